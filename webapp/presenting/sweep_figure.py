"""The ranking of NCCL's settings as bars with intervals. SVG attributes only: inline styles are forbidden."""

from __future__ import annotations

import math
from collections.abc import Callable
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
# Further out than this an arm is out of the question, and the others need the room.
FARTHEST = 2.0
NEAREST = 1.1


@dataclass(frozen=True, slots=True)
class Bar:
    """Percent of the width, rising with time. start, width: from the baseline to the arm. low, high: ends of
    its interval. beyond: it lies further out than the drawing."""

    start: float
    width: float
    low: float
    high: float
    beyond: bool


@dataclass(frozen=True, slots=True)
class SweepLine:
    """One arm. step_ms: its all-reduces in a step, None without a model. by_size: its ratios, in the order of
    the figure's sizes."""

    effect: ArmEffect
    icon: str
    colour: str
    word: str
    settings: str
    bar: Bar | None
    step_ms: Range | None
    by_size: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class SweepFigure:
    """baseline: where it stands, percent of the width. own_ms, best_ms: the all-reduces of a step without any
    setting and with the recommended one; None without a model or advice. sizes: bytes, all that were
    measured, rising."""

    lines: tuple[SweepLine, ...]
    baseline: float
    own_ms: float | None
    best_ms: Range | None
    sizes: tuple[int, ...]


def sweep_figure(comparison: SweepComparison) -> SweepFigure:
    ends = [end for e in comparison.arms for end in (e.low, e.high) if end]
    reach = math.log(min(FARTHEST, max([NEAREST, *ends])))
    low = -math.log(min(FARTHEST, max([NEAREST, *(1 / end for end in ends)])))

    def x(ratio: float) -> float:
        inside = min(reach, max(low, math.log(ratio)))
        return round(100 * (inside - low) / (reach - low), 2)

    sizes = tuple(sorted({size for effect in comparison.arms for size, _ in effect.by_size}))
    lines = [_line(comparison, effect, _bar(effect, x(1.0), x), sizes) for effect in comparison.arms]
    best = next((line.step_ms for line in lines if line.effect is comparison.recommended), None)
    return SweepFigure(tuple(lines), x(1.0), comparison.step_ms, best, sizes)


def _bar(effect: ArmEffect, baseline: float, x: Callable[[float], float]) -> Bar | None:
    if not effect.ratio or not effect.low or not effect.high:
        return None
    end = x(effect.ratio)
    beyond = not 1 / FARTHEST <= effect.ratio <= FARTHEST
    start, width = min(end, baseline), abs(end - baseline)
    return Bar(start, round(width, 2), x(effect.low), x(effect.high), beyond)


def _line(comparison: SweepComparison, effect: ArmEffect, bar: Bar | None, sizes: tuple[int, ...]) -> SweepLine:
    step_ms = None
    if comparison.step_ms is not None and effect.low and effect.high:
        step_ms = (comparison.step_ms * effect.low, comparison.step_ms * effect.high)
    settings = " ".join(f"{name}={value}" for name, value in effect.arm.settings.items())
    ratios = dict(effect.by_size)
    by_size = tuple(ratios.get(size) for size in sizes)
    return SweepLine(effect, *WORDS[effect.standing], settings, bar, step_ms, by_size)
