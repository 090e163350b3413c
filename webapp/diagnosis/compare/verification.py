"""One state of a machine against another: for each kind of measurement first the gate, then the effect."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from webapp.diagnosis.compare.comparability import Comparability, Gate, comparability
from webapp.diagnosis.compare.conditions import Side, side_of
from webapp.diagnosis.compare.effects import Comparison, Outcome
from webapp.diagnosis.compare.energy import Energy, compare_energy
from webapp.diagnosis.compare.kinds import KINDS, Kind, results
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation.dedupe import distinct_runs


@dataclass(frozen=True, slots=True)
class Pick:
    """The results that represent one state: all of an epoch, or those of one output."""

    epoch: int = 0
    source: str = ""

    def takes(self, item: Sourced) -> bool:
        return item.source == self.source if self.source else item.epoch == self.epoch


@dataclass(frozen=True, slots=True)
class Verified:
    """One kind of measurement, made on both sides. compared: what may be said of it after the gate.
    energy: of serving whose power was measured on both sides, unless the gate is closed."""

    kind: Kind
    before: Side
    after: Side
    gate: Comparability
    compared: Comparison
    energy: tuple[Energy, ...] = ()


def verified(facts: Facts, before: Pick, after: Pick, intended: frozenset[str]) -> tuple[Verified, ...]:
    """intended: as for `comparability`. Kinds that were not measured on both sides are left out."""
    comparisons = []
    for kind in KINDS:
        items = results(facts, kind)
        old, new = (side_of(distinct_runs(filter(pick.takes, items)), facts) for pick in (before, after))
        if old.results and new.results:
            comparisons.append(verify(kind, old, new, intended))
    return tuple(comparisons)


def verify(kind: Kind, old: Side, new: Side, intended: frozenset[str], *, paired: bool = False) -> Verified:
    """Neither side empty. paired: the runs of both were taken in turns."""
    gate = comparability(old, new, intended)
    comparison = kind.compare(old.values, new.values, paired)
    with_energy = old.is_serving and gate.verdict is not Gate.NOT_COMPARABLE
    energy = compare_energy(old.values, new.values, paired=paired) if with_energy else ()
    return Verified(kind, old, new, gate, _after_the_gate(comparison, gate), energy)


def _after_the_gate(comparison: Comparison, gate: Comparability) -> Comparison:
    if gate.verdict is not Gate.NOT_COMPARABLE:
        return comparison
    why = f"the two states are not comparable, because {gate.why}"
    return replace(comparison, outcome=Outcome.CANNOT_TELL, why=why, excluded="", comparable=False)


def left_out(comparisons: Iterable[Verified]) -> int:
    """Rows that fail their own arithmetic, of all kinds."""
    return sum(len(item.compared.left_out) for item in comparisons)
