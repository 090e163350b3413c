"""What two sets of runs can tell of a change, and what they exclude.

Rows of one run share whatever the machine did that minute, so runs are what is counted and not the samples
inside one. Intervals are Student's t on logarithms of the times (Jain 1991, chapter 13), of the differences
where runs were taken in turns. All sizes are asked together by Holm's method, so that equal states are called
different in at most one comparison of twenty, however many sizes there are.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median, stdev, variance

from agents.facts.bench import RejectedRow
from webapp.diagnosis.compare.student import Answer, holm, reach, two_sided

# Less than this is of no use to anyone who serves a model.
MARGIN = 0.05
# With single runs only a change far beyond what runs differ by is excluded.
SINGLE_RUN_NOISE = 1.5
OUTSIDE = 0.05
# Below the 5 % that are promised, as for a sweep: real noise has longer tails than the normal distribution's.
ALPHA = 0.04
POWER = 0.8
MOST_RUNS = 50

Key = tuple[str, int]
Times = Mapping[Key, Sequence[float]]


def by_run(runs: Iterable[Mapping[Key, float]]) -> Times:
    """One list for each key, with one entry a run that has the key."""
    times: dict[Key, list[float]] = {}
    for run in runs:
        for key, time in run.items():
            times.setdefault(key, []).append(time)
    return times


class Outcome(StrEnum):
    IMPROVED = "improved"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True)
class SizeEffect:
    """path: what was measured, a CopyPath or a way of timing. size_bytes: 0 where there is none. speedup:
    time before ÷ time after, above 1 is faster. low, high: its interval at the level that this size was
    asked at, at least 95 %; None with a single run. differs: beyond chance, all sizes together.
    minimum_detectable: the smallest relative change that these runs would show in four of five tries; None
    with a single run.
    """

    path: str
    size_bytes: int
    before_us: float
    after_us: float
    speedup: float
    low: float | None = None
    high: float | None = None
    minimum_detectable: float | None = None
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """The conclusion from the times alone; the gate decides whether they may be compared at all.

    excluded: a sentence on what the figures rule out, "" when nothing. left_out: rows whose own arithmetic does not
    hold. unstable: rows left out because they spread or drift too far. detectable: the change that would have shown
    at half of the sizes. runs_needed: how many of each state would show a change of MARGIN, by what runs of one
    state differ by; None: not known, or too many.
    """

    outcome: Outcome
    why: str
    excluded: str
    effects: tuple[SizeEffect, ...]
    runs: tuple[int, int]
    spread: float | None
    comparable: bool
    left_out: tuple[RejectedRow, ...] = ()
    unstable: int = 0
    detectable: float | None = None
    runs_needed: int | None = None


def concluded(
    times: tuple[Times, Times],
    runs: tuple[int, int],
    *,
    clash: bool = False,
    paired: bool = False,
    printed: Sequence[Times] = (),
    left_out: tuple[RejectedRow, ...] = (),
    unstable: int = 0,
) -> Comparison:
    """times: of both states. printed: the same with what was left out, which counts for the spread."""
    effects = effects_of(*times, paired=paired)
    outcome, why = judge(effects, runs, clash=clash)
    return Comparison(
        outcome,
        why,
        "" if clash else excluded(effects),
        effects,
        runs,
        spread(printed or times),
        bool(effects) and not clash,
        left_out,
        unstable,
        detectable(effects),
        runs_needed(times, paired=paired),
    )


def minimum_detectable(spread: float, runs: int) -> float | None:
    """The relative change that `runs` runs of each state show in four of five tries, when single runs
    differ by `spread` (standard deviation of the logarithm). None with a single run."""
    if runs < 2:
        return None
    return _detectable(spread * math.sqrt(2 / runs), 2 * runs - 2, OUTSIDE)


def runs_needed(times: tuple[Times, Times], *, paired: bool = False) -> int | None:
    """How many runs of each state show a change of MARGIN at the size that spreads most; None: no repeat, or too
    many."""
    shared = times[0].keys() & times[1].keys()
    pairs = [(times[0][key], times[1][key]) for key in shared]
    if paired:
        gains = [_paired_gains(*pair) for pair in pairs if len(pair[0]) == len(pair[1]) > 1]
        spreads = [stdev(gain) for gain in gains]
    else:
        spreads = [stdev(_logs(side)) for pair in pairs for side in pair if len(side) > 1]
    if not spreads:
        return None
    widest, alpha = max(spreads), ALPHA / len(shared)
    for runs in range(2, MOST_RUNS + 1):
        error = widest / math.sqrt(runs) if paired else widest * math.sqrt(2 / runs)
        freedom = runs - 1 if paired else 2 * runs - 2
        if _detectable(error, freedom, alpha) <= MARGIN:
            return runs
    return None


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Logarithms: what the mean of one size changed by, and how far that is off by chance."""

    gain: float
    error: float
    freedom: int

    @property
    def chance(self) -> float:
        if not self.error:
            return 0.0 if self.gain else 1.0
        return two_sided(self.gain / self.error, self.freedom)


def effects_of(before: Times, after: Times, *, paired: bool = False) -> tuple[SizeEffect, ...]:
    """The effect at each size that both states have. Times are in µs, one entry a run. paired: runs at the same
    index were taken in turns."""
    shared = sorted(before.keys() & after.keys())
    estimates = {
        key: _paired_estimate(before[key], after[key])
        if paired and len(before[key]) == len(after[key])
        else _pooled_estimate(before[key], after[key])
        for key in shared
        if len(before[key]) > 1 and len(after[key]) > 1
    }
    answers = dict(zip(estimates, holm([one.chance for one in estimates.values()], ALPHA), strict=True))
    return tuple(_effect(key, before[key], after[key], estimates.get(key), answers.get(key)) for key in shared)


def _logs(times: Sequence[float]) -> list[float]:
    return [math.log(t) for t in times]


def _pooled_estimate(before: Sequence[float], after: Sequence[float]) -> _Estimate:
    sides = _logs(before), _logs(after)
    freedom = len(before) + len(after) - 2
    pooled = sum(variance(side) * (len(side) - 1) for side in sides) / freedom
    error = math.sqrt(pooled * (1 / len(before) + 1 / len(after)))
    return _Estimate(fmean(sides[0]) - fmean(sides[1]), error, freedom)


def _paired_gains(before: Sequence[float], after: Sequence[float]) -> list[float]:
    return [was - now for was, now in zip(_logs(before), _logs(after), strict=True)]


def _paired_estimate(before: Sequence[float], after: Sequence[float]) -> _Estimate:
    gains = _paired_gains(before, after)
    return _Estimate(fmean(gains), stdev(gains) / math.sqrt(len(gains)), len(gains) - 1)


def _effect(
    key: Key, before: Sequence[float], after: Sequence[float], estimate: _Estimate | None, answer: Answer | None
) -> SizeEffect:
    middle = math.exp(fmean(_logs(before))), math.exp(fmean(_logs(after)))
    if estimate is None or answer is None:
        return SizeEffect(*key, *middle, middle[0] / middle[1])
    half = reach(answer.outside, estimate.freedom) * estimate.error
    return SizeEffect(
        *key,
        *middle,
        math.exp(estimate.gain),
        math.exp(estimate.gain - half),
        math.exp(estimate.gain + half),
        _detectable(estimate.error, estimate.freedom, answer.outside),
        answer.differs,
    )


def _detectable(error: float, freedom: int, alpha: float) -> float:
    one_sided = 2 * (1 - POWER)
    return math.exp((reach(alpha, freedom) + reach(one_sided, freedom)) * error) - 1


def detectable(effects: Sequence[SizeEffect]) -> float | None:
    """The change that would have shown at half of the sizes; None with single runs."""
    changes = [e.minimum_detectable for e in effects if e.minimum_detectable is not None]
    return median(changes) if changes else None


def judge(effects: tuple[SizeEffect, ...], runs: tuple[int, int], *, clash: bool) -> tuple[Outcome, str]:
    """runs: of each state. clash: the two sides were not timed alike."""
    if not effects:
        return Outcome.CANNOT_TELL, "no size was measured on the same path before and after"
    if clash:
        return Outcome.CANNOT_TELL, "one side is device-timed and the other is not"
    known = [e for e in effects if e.low is not None and e.high is not None]
    if not known:
        one = "one run each" if runs == (1, 1) else "one run of a state"
        return Outcome.CANNOT_TELL, f"{one} cannot tell a change from chance"
    faster = sum(e.differs and e.speedup > 1 + MARGIN for e in known)
    slower = sum(e.differs and e.speedup < 1 / (1 + MARGIN) for e in known)
    of = f"{len(known)} asked together" if len(known) > 1 else "1"
    if faster and slower:
        text = f"faster at {faster} and slower at {slower} of {of}, beyond chance"
        return Outcome.CANNOT_TELL, text
    if faster:
        return Outcome.IMPROVED, f"faster at {faster} of {of}, beyond chance"
    if slower:
        return Outcome.WORSE, f"slower at {slower} of {of}, beyond chance"
    if all((e.low or 0) > 1 / (1 + MARGIN) and (e.high or 9) < 1 + MARGIN for e in known):
        return (Outcome.EQUIVALENT, f"everything is within {MARGIN * 100:.0f} %, with 95 % confidence")
    if any(e.differs for e in known):
        return (Outcome.CANNOT_TELL, f"what differs beyond chance may be less than {MARGIN * 100:.0f} %")
    return (Outcome.CANNOT_TELL, "no change beyond chance, and the runs differ too much to call it none")


def excluded(effects: tuple[SizeEffect, ...]) -> str:
    """What even single runs rule out: noise does not hide a doubling."""
    if not effects:
        return ""
    ends = [end for e in effects for end in (e.low or e.speedup, e.high or e.speedup)]
    if max(ends) < SINGLE_RUN_NOISE and min(ends) > 1 / SINGLE_RUN_NOISE:
        return "a change of 2 × is excluded"
    return ""


def spread(times: Sequence[Times]) -> float | None:
    """The largest relative difference between two runs of one state at one size; None: no repeat."""
    spreads = [max(v) / min(v) - 1 for state in times for v in state.values() if len(v) > 1]
    return max(spreads, default=None)
