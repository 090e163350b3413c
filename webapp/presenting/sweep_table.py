"""The ranking of NCCL's settings as a table."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.diagnosis.claim import Range
from webapp.diagnosis.compare.sweep import ArmEffect, Standing, SweepComparison

WORDS = {
    Standing.FASTER: ("✓", "ok", "faster"),
    Standing.SLOWER: ("✕", "bad", "slower"),
    Standing.ALIKE: ("–", "unk", "no difference shown"),
    Standing.UNTOLD: ("◌", "unk", "too few tries"),
    Standing.WRONG: ("✕", "bad", "wrong sums"),
    Standing.HANG: ("✕", "bad", "hung"),
    Standing.FAILED: ("!", "bad", "did not run"),
}


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One arm. step_ms: its all-reduces in a step, None without a model. by_size: its ratios, in the order of
    the table's sizes."""

    effect: ArmEffect
    icon: str
    colour: str
    word: str
    settings: str
    step_ms: Range | None
    by_size: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class SweepTable:
    """own_ms, best_ms: the all-reduces of a step without any setting and with the recommended one; None without a
    model or advice. sizes: bytes, all that were measured, rising."""

    rows: tuple[SweepRow, ...]
    own_ms: float | None
    best_ms: Range | None
    sizes: tuple[int, ...]


def sweep_table(comparison: SweepComparison) -> SweepTable:
    sizes = tuple(sorted({size for effect in comparison.arms for size, _ in effect.by_size}))
    rows = tuple(_row(comparison, effect, sizes) for effect in comparison.arms)
    best = next((row.step_ms for row in rows if row.effect is comparison.recommended), None)
    return SweepTable(rows, comparison.step_ms, best, sizes)


def _row(comparison: SweepComparison, effect: ArmEffect, sizes: tuple[int, ...]) -> SweepRow:
    step_ms = None
    if comparison.step_ms is not None and effect.low and effect.high:
        step_ms = (comparison.step_ms * effect.low, comparison.step_ms * effect.high)
    settings = " ".join(f"{name}={value}" for name, value in effect.arm.settings.items())
    ratios = dict(effect.by_size)
    by_size = tuple(ratios.get(size) for size in sizes)
    return SweepRow(effect, *WORDS[effect.standing], settings, step_ms, by_size)
