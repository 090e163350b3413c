"""Which of NCCL's settings really differ from its own choice, and by how much.

A randomised block experiment: each block holds every arm once, so an arm is compared with the baseline of the
same block, by Student's t on the logarithm of their ratio (Jain 1991, chapter 13, paired observations). What
is compared is the time of an average all-reduce, over the message sizes by how often each comes. The arms are
judged together by Holm's method, so that with no difference at all one is called different in at most one
sweep of twenty. An arm that hung, failed or summed wrong in any try is never compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median, stdev

from agents.facts.bench import SweepArm, SweepResult
from webapp.diagnosis.compare.student import Answer, holm, reach, two_sided

# Below the 5 % that are promised: real noise has longer tails than the normal distribution's.
ALPHA = 0.04
LEAST_BLOCKS = 5
# Two ways to time the same all-reduce differ by up to 2 % themselves (DECISIONS.md, record 11).
WORTH = 0.02
# What a setting may cost messages that are larger than those it is chosen for.
PRICE = 0.05

Weights = Sequence[tuple[int, float]]


class Standing(StrEnum):
    """alike: no difference was shown, which is no proof that there is none. untold: too few whole blocks."""

    FASTER = "faster"
    ALIKE = "alike"
    SLOWER = "slower"
    UNTOLD = "untold"
    WRONG = "wrong"
    HANG = "hang"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ArmEffect:
    """ratio: time of an average all-reduce ÷ the baseline's, below 1 is faster. low, high: its interval at
    the level that this arm was judged at. chance: of a difference this large without one. None: not compared.

    by_size: the ratio at each size, bytes rising. dear_at: the largest size, where it is larger than those
    that are compared and the arm takes clearly longer there; else None.
    """

    arm: SweepArm
    standing: Standing
    blocks: int = 0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    by_size: tuple[tuple[int, float], ...] = ()
    dear_at: int | None = None

    @property
    def environment(self) -> str:
        """The lines to paste before the engine is started."""
        return "\n".join(f"export {name}={value}" for name, value in self.arm.settings.items())


@dataclass(frozen=True, slots=True)
class SweepComparison:
    """arms: the fastest first, those that were not compared last; without the baseline.

    baseline_us: an average all-reduce; None when no block was whole. all_reduces: in one step, None without a
    model. detectable: the relative change that half of the arms would have been called different for; None
    when no arm was compared.
    """

    arms: tuple[ArmEffect, ...]
    recommended: ArmEffect | None
    baseline_us: float | None
    blocks: int
    weights: tuple[tuple[int, float], ...]
    all_reduces: float | None
    detectable: float | None

    @property
    def differing(self) -> tuple[ArmEffect, ...]:
        return tuple(e for e in self.arms if e.standing in {Standing.FASTER, Standing.SLOWER})

    @property
    def has_comparison(self) -> bool:
        """Whether any arm could be compared."""
        return any(effect.ratio is not None for effect in self.arms)

    @property
    def step_ms(self) -> float | None:
        """The all-reduces of one decode step without any setting."""
        if self.baseline_us is None or self.all_reduces is None:
            return None
        return self.baseline_us * self.all_reduces / 1e3


Tries = Mapping[int, Mapping[int, float]]


def compare_sweep(
    result: SweepResult, *, weights: Weights = (), all_reduces: float | None = None, alpha: float = ALPHA
) -> SweepComparison:
    """weights: (bytes, how often) in place of the sweep's own. all_reduces: in one step."""
    chosen = _shares(weights or result.weights)
    tries = {arm.name: _times_of_arm(result, arm.name) for arm in result.arms}
    base = tries[result.arms[0].name] if result.arms else {}
    ground = _averages(base, chosen)
    logs = {
        arm.name: _log_ratios(_averages(tries[arm.name], chosen), ground)
        for arm in result.arms[1:]
        if arm.outcome == "right"
    }
    compared = {name: ratios for name, ratios in logs.items() if len(ratios) >= LEAST_BLOCKS}
    answers = dict(zip(compared, holm([_chance_of(f) for f in compared.values()], alpha), strict=True))
    effects = [
        _effect(arm, compared[arm.name], answers[arm.name], _by_size(tries[arm.name], base), chosen)
        if arm.name in compared
        else ArmEffect(arm, _standing_of(arm), len(logs.get(arm.name, ())))
        for arm in result.arms[1:]
    ]
    ranked = tuple(sorted(effects, key=lambda e: (e.ratio is None, e.ratio or 0.0, e.arm.name)))
    return SweepComparison(
        ranked,
        _recommendation(ranked),
        math.exp(fmean(map(math.log, ground.values()))) if ground else None,
        len(ground),
        chosen,
        all_reduces,
        _detectable(ranked),
    )


def _recommendation(ranked: Sequence[ArmEffect]) -> ArmEffect | None:
    """The fastest that is worth it, one that costs large messages nothing before any other."""
    worth = [effect for effect in ranked if _worth_it(effect)]
    return next((e for e in worth if not e.dear_at), worth[0] if worth else None)


def _worth_it(effect: ArmEffect) -> bool:
    faster = effect.standing is Standing.FASTER
    return faster and effect.ratio is not None and effect.ratio <= 1 - WORTH


def _shares(weights: Weights) -> tuple[tuple[int, float], ...]:
    total = sum(weight for _, weight in weights)
    return tuple((size, weight / total) for size, weight in weights if weight > 0) if total else ()


def _times_of_arm(result: SweepResult, name: str) -> Tries:
    """µs by block and size."""
    times: dict[int, dict[int, float]] = {}
    for row in result.rows:
        if row.arm == name and row.time_us > 0:
            times.setdefault(row.block, {})[row.size_bytes] = row.time_us
    return times


def _averages(blocks: Tries, weights: Weights) -> dict[int, float]:
    """µs of an average all-reduce, by block; a block in which a size is missing has none."""
    return {
        block: sum(share * times[size] for size, share in weights)
        for block, times in blocks.items()
        if weights and all(size in times for size, _ in weights)
    }


def _log_ratios(arm: Mapping[int, float], ground: Mapping[int, float]) -> list[float]:
    return [math.log(arm[block] / ground[block]) for block in sorted(arm.keys() & ground.keys())]


def _chance_of(logs: Sequence[float]) -> float:
    error = _standard_error(logs)
    if not error:
        return 1.0 if not fmean(logs) else 0.0
    return two_sided(fmean(logs) / error, len(logs) - 1)


def _standard_error(logs: Sequence[float]) -> float:
    return stdev(logs) / math.sqrt(len(logs))


def _effect(
    arm: SweepArm, logs: Sequence[float], answer: Answer, by_size: tuple[tuple[int, float], ...], weights: Weights
) -> ArmEffect:
    middle, half = fmean(logs), reach(answer.outside, len(logs) - 1) * _standard_error(logs)
    ratio, low, high = (math.exp(end) for end in (middle, middle - half, middle + half))
    standing = Standing.ALIKE
    if answer.differs:
        standing = Standing.FASTER if ratio < 1 else Standing.SLOWER
    size, there = by_size[-1]
    dear = size > max(size for size, _ in weights) and there > 1 + PRICE
    chance, dear_at = _chance_of(logs), size if dear else None
    return ArmEffect(arm, standing, len(logs), ratio, low, high, chance, by_size, dear_at)


def _by_size(arm: Tries, base: Tries) -> tuple[tuple[int, float], ...]:
    """The arm's ratio to the baseline at each size."""
    logs: dict[int, list[float]] = {}
    for block in arm.keys() & base.keys():
        for size in arm[block].keys() & base[block].keys():
            logs.setdefault(size, []).append(math.log(arm[block][size] / base[block][size]))
    return tuple((size, math.exp(fmean(values))) for size, values in sorted(logs.items()))


def _standing_of(arm: SweepArm) -> Standing:
    """The standing of an arm that was not compared."""
    known = {"wrong": Standing.WRONG, "hang": Standing.HANG, "right": Standing.UNTOLD, "": Standing.UNTOLD}
    return known.get(arm.outcome, Standing.FAILED)


def _detectable(effects: Sequence[ArmEffect]) -> float | None:
    halves = [math.sqrt(e.high / e.low) - 1 for e in effects if e.low and e.high]
    return median(halves) if halves else None
