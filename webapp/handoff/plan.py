"""Every phase of the plan with its scripts, as far as the evidence lets them be made."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agents.facts import View
from webapp.diagnosis.case import Advice, OptionStatus
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.option import PHASES, Option
from webapp.diagnosis.scripts import ROLES, Do, Instruction, PhaseScript, ScriptError, host_instructions, phase_script

_WORTH_IT = {OptionStatus.RECOMMENDED, OptionStatus.POSSIBLE}


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase's part on one machine.

    scripts: those that can be made now, in the order apply, verify, rollback. problem: why there is
    no apply script, "" when there is one. gives_up: the isolation that is gone once it is applied.
    """

    id: str
    title: str
    role: View
    scripts: tuple[PhaseScript, ...]
    problem: str = ""
    gives_up: tuple[str, ...] = ()

    @property
    def apply(self) -> PhaseScript | None:
        return next((script for script in self.scripts if script.do is Do.APPLY), None)

    @property
    def short_title(self) -> str:
        """Without what comes after it, which is not the host's."""
        return self.title.partition(";")[0]

    @property
    def may_be_asked(self) -> bool:
        """To apply it, or once it is applied to verify it and take it back."""
        return any(script.do is not Do.ROLLBACK for script in self.scripts)


@dataclass(frozen=True, slots=True)
class ByHand:
    """An option that no script carries out. instruction: what to type on this host, None where it has none."""

    option: Option
    advice: Advice
    instruction: Instruction | None


@dataclass(frozen=True, slots=True)
class Section:
    """A phase as the plan shows it. parts: in the order they are run. by_hand: the options of the phase
    that are worth it here and that no script carries out, the recommended first."""

    id: str
    title: str
    parts: tuple[Phase, ...]
    by_hand: tuple[ByHand, ...]

    @property
    def ready(self) -> bool:
        return any(part.apply for part in self.parts)

    @property
    def may_be_asked(self) -> bool:
        return any(part.may_be_asked for part in self.parts)


def phases(diagnosis: Diagnosis, vmid: int | None) -> tuple[Phase, ...]:
    """The parts of every phase, in the order they are run."""
    return tuple(part for name in PHASES for part in _phase_parts(diagnosis, name, vmid))


def phases_to_ask(diagnosis: Diagnosis, vmid: int | None) -> list[Phase]:
    """The host's parts that have something to run by what is known now."""
    return [phase for phase in phases(diagnosis, vmid) if phase.may_be_asked and phase.role is View.HOST]


def sections(diagnosis: Diagnosis, vmid: int | None) -> tuple[Section, ...]:
    return tuple(
        Section(name, title, tuple(_phase_parts(diagnosis, name, vmid)), _by_hand(diagnosis, name))
        for name, title in PHASES.items()
    )


def shared_problem(plan: Iterable[Section]) -> str:
    """Why several parts have no apply script, said once; "" where no reason is shared."""
    counts = Counter(part.problem for section in plan for part in section.parts if part.problem)
    problem, times = max(counts.items(), key=lambda one: one[1], default=("", 0))
    return problem if times > 1 else ""


def _phase_parts(diagnosis: Diagnosis, name: str, vmid: int | None) -> Iterator[Phase]:
    for role in ROLES[name] or (View.HOST,):
        yield _phase(diagnosis, name, vmid, role)


def _phase(diagnosis: Diagnosis, name: str, vmid: int | None, role: View) -> Phase:
    made: list[PhaseScript] = []
    problem = ""
    for do in Do:
        try:
            made.append(phase_script(diagnosis, name, do, vmid, role=role))
        except ScriptError as error:
            problem = problem or error.on_page
    if any(script.do is Do.APPLY for script in made):
        problem = ""
    gives_up = tuple(_gives_up(diagnosis, name)) if role is View.HOST else ()
    return Phase(name, PHASES[name], role, tuple(made), problem, gives_up)


def _gives_up(diagnosis: Diagnosis, name: str) -> Iterator[str]:
    """A script carries out what is recommended."""
    for option in all_options():
        scripted = option.phase == name and option.scripted
        advised = diagnosis.advice[option.id].status is OptionStatus.RECOMMENDED
        if scripted and advised and option.isolation_cost != "none":
            yield option.isolation_cost


def _by_hand(diagnosis: Diagnosis, name: str) -> tuple[ByHand, ...]:
    instructions = host_instructions(diagnosis)
    worth = [
        ByHand(option, diagnosis.advice[option.id], instructions.get(option.id))
        for option in all_options()
        if option.phase == name and not option.scripted and diagnosis.advice[option.id].status in _WORTH_IT
    ]
    return tuple(sorted(worth, key=lambda one: one.advice.status is not OptionStatus.RECOMMENDED))
