"""The facts that a decision's options name, compared before and after the change. A decision that is called
verified has to show at least these.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agents.facts import Fact, ReadingKind, all_facts
from agents.facts.bench import ALLREDUCE, COPY, SERVING
from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.p2p import P2P_READ
from webapp.diagnosis.compare.comparability import Comparability, Gate
from webapp.diagnosis.compare.conditions import Side
from webapp.diagnosis.compare.effects import Outcome
from webapp.diagnosis.compare.kinds import KINDS
from webapp.diagnosis.compare.state_diff import Difference, diff_states
from webapp.diagnosis.compare.verification import Verified
from webapp.diagnosis.facts import Facts, Sourced

_ID = re.compile(r"\b(?:bench|guest|host|vm)\.[a-z][a-z0-9_]*")
LONGEST = 60  # characters of two values that a sentence holds
_ANSWERS = (ReadingKind.KNOWN, ReadingKind.ABSENT)
_MEASURED = frozenset(kind.fact.id for kind in KINDS)
# Measurements that show what an option changes though its words name only the fact.
_MEASURED_BY = {P2P_READ.id: (ALLREDUCE.id, COPY.id), NCCL_TRANSPORTS.id: (ALLREDUCE.id,)}


@dataclass(frozen=True, slots=True)
class FactComparison:
    """One fact on both sides of a change. change: the outcome in words. named: the chosen options name the fact.
    tells: the comparison has an outcome; “cannot tell” and an unchanged value do not show that a change did what it
    was meant to. sources: of both sides."""

    fact_id: str
    title: str
    change: str
    gate: Comparability
    named: bool
    tells: bool
    sources: tuple[str, ...]

    @property
    def comparable(self) -> bool:
        return self.gate.verdict is not Gate.NOT_COMPARABLE


def names_of(verified_by: str, changes: Iterable[str]) -> tuple[str, ...]:
    """Ids of the facts that an option is verified by, those in its own words first. SERVING, the speed of the
    workload, is always among them; a benchmark without rules for a comparison never is."""
    own = [*_ID.findall(verified_by), *_ID.findall(" ".join(changes))]
    measurements = [more for name in own for more in _MEASURED_BY.get(name, ())]
    compared = [n for n in own if n in _MEASURED or not n.startswith("bench.")]
    return tuple(dict.fromkeys([*compared, *measurements, SERVING.id]))


def compare_facts(
    measured: Iterable[Verified], sides: tuple[Side, Side], gate: Comparability, names: tuple[str, ...]
) -> tuple[FactComparison, ...]:
    """measured: between the two states. sides: everything that was read in either; gate: between them."""
    return (*_of_measurements(measured, names), *_of_readings(sides, gate, names))


def _of_measurements(measured: Iterable[Verified], names: tuple[str, ...]) -> Iterator[FactComparison]:
    for item in measured:
        fact, comparison = item.kind.fact, item.compared
        sources = [result.source for side in (item.before, item.after) for result in side.results]
        tells = comparison.outcome is not Outcome.CANNOT_TELL
        outcome = f"{comparison.outcome.replace('_', ' ')}: {comparison.why}"
        named = fact.id in names
        yield FactComparison(fact.id, item.kind.title, outcome, item.gate, named, tells, tuple(dict.fromkeys(sources)))


def _of_readings(sides: tuple[Side, Side], gate: Comparability, names: tuple[str, ...]) -> Iterator[FactComparison]:
    old, new = (side.facts for side in sides)
    differing: dict[str, list[Difference]] = {}
    for difference in diff_states(old, new).differences:
        differing.setdefault(difference.fact_id, []).append(difference)
    for name in names:
        was, now = answered(old, name), answered(new, name)
        if was is None or now is None or name in _MEASURED:
            continue
        change = _of_the_vm(was, now) if name.startswith("vm.") else _change_text(differing.get(name))
        sources = tuple(dict.fromkeys((was.source, now.source)))
        outcome = change or "as before"
        yield FactComparison(name, title_of(name), outcome, gate, True, bool(change), sources)


def _of_the_vm(was: Sourced, now: Sourced) -> str:
    """Compares facts that follow from the host's list of VMs; they are small values."""
    old, new = was.reading, now.reading
    return "" if (old.kind, old.value) == (new.kind, new.value) else "it changed"


def _change_text(differences: list[Difference] | None) -> str:
    """How one part, or many alike parts, changed; "" when nothing changed."""
    if not differences:
        return ""
    first = differences[0]
    if len(differences) > 1 or len(f"{first.before}{first.after}") > LONGEST:
        return "it changed"
    return f"{first.before or 'not there'} → {first.after or 'not there'}"


def answered(facts: Facts, fact_id: str) -> Sourced | None:
    """The best reading, when it is known or absent; else None."""
    best = facts.best(Fact(fact_id, "", None))
    return best if best and best.reading.kind in _ANSWERS else None


def title_of(fact_id: str) -> str:
    """A fact's title; VM facts are marked, because the guest has some with the same title."""
    fact = all_facts().get(fact_id)
    title = fact.title if fact else fact_id
    return f"{title} (VM)" if fact_id.startswith("vm.") else title
