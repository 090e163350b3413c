"""Did a token take less energy: output tokens per joule at each number of requests at once.

Our own load alone measures both: it counts tokens while it asks what all GPUs of the machine draw. What is
asked here is asked apart from the times, all rungs together, by the same rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.diagnosis.compare.effects import Key, by_run, effects_of
from webapp.diagnosis.compare.serving import Ladder, by_rung


@dataclass(frozen=True, slots=True)
class Energy:
    """One rung. before, after: output tokens per joule, the geometric mean of the runs. ratio: after
    ÷ before, above 1 is more tokens for the same energy; low, high, differs: as for a time."""

    rung: str
    before: float
    after: float
    ratio: float
    low: float | None
    high: float | None
    differs: bool


def compare_energy(before: Sequence[Ladder], after: Sequence[Ladder], *, paired: bool = False) -> tuple[Energy, ...]:
    """One ladder a run; rungs that both sides have with their power. Nothing where one has none."""
    effects = effects_of(by_run(map(_joules, before)), by_run(map(_joules, after)), paired=paired)
    return tuple(Energy(e.path, 1 / e.before_us, 1 / e.after_us, e.speedup, e.low, e.high, e.differs) for e in effects)


def _joules(ladder: Ladder) -> dict[Key, float]:
    """Joules of an output token."""
    return by_rung(ladder, lambda row: 1 / row.tokens_per_joule if row.tokens_per_joule and row.power_w else None)
