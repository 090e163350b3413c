"""Every phase of the plan with its scripts, as far as the evidence lets them be made."""

from __future__ import annotations

from dataclasses import dataclass

from agents.facts import View
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.phases import PHASES
from webapp.diagnosis.scripts import Do, PhaseScript, ScriptError, phase_script

# The one phase whose scripts run inside the VM.
GUEST_PHASES = frozenset({"P1"})


@dataclass(frozen=True, slots=True)
class Phase:
    """scripts: those that can be made now, in the order apply, verify, rollback. problem: why there is
    no apply script, "" when there is one."""

    id: str
    title: str
    role: View
    scripts: tuple[PhaseScript, ...]
    problem: str = ""

    @property
    def apply(self) -> PhaseScript | None:
        return next((script for script in self.scripts if script.do is Do.APPLY), None)

    @property
    def may_be_asked(self) -> bool:
        """To apply it, or once it is applied to verify it and take it back."""
        return any(script.do is not Do.ROLLBACK for script in self.scripts)


def phases(found: Diagnosis, vmid: int | None) -> tuple[Phase, ...]:
    return tuple(_phase(found, name, title, vmid) for name, title in PHASES.items())


def _phase(found: Diagnosis, name: str, title: str, vmid: int | None) -> Phase:
    role = View.GUEST if name in GUEST_PHASES else View.HOST
    made: list[PhaseScript] = []
    problem = ""
    for do in Do:
        try:
            made.append(phase_script(found, name, do, vmid, role=role))
        except ScriptError as error:
            problem = problem or str(error)
    if not any(script.do is Do.APPLY for script in made):
        return Phase(name, title, role, tuple(made), problem)
    return Phase(name, title, role, tuple(made))
