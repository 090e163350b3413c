"""What two sets of runs can tell of a change, and what they exclude.

Rows of one run share whatever the machine did that minute, so runs are what is counted and not the samples
inside one. Intervals are Student's t on logarithms of the times (Jain 1991, chapter 13).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, variance

from agents.facts.bench import RejectedRow
from webapp.diagnosis.compare.student import reach

# Less than this is of no use to anyone who serves a model.
MARGIN = 0.05
# With single runs only a change far beyond what runs differ by is excluded.
SINGLE_RUN_NOISE = 1.5
OUTSIDE = 0.05
POWER = 0.8

Key = tuple[str, int]
Times = Mapping[Key, Sequence[float]]


class Outcome(StrEnum):
    IMPROVED = "improved"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True)
class SizeEffect:
    """path: what was measured, a CopyPath or a way of timing. speedup: time before ÷ time after, above 1 is
    faster. low, high: its 95 % interval, None with a single run. minimum_detectable: the smallest relative
    change that these runs would show in four of five tries; None with a single run."""

    path: str
    size_bytes: int
    before_us: float
    after_us: float
    speedup: float
    low: float | None = None
    high: float | None = None
    minimum_detectable: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """differs: what is not the same in both environments. unknown: what neither recorded.

    excluded: a sentence on what the figures rule out, "" when nothing. left_out: rows whose own
    arithmetic does not hold. unstable: rows left out because they spread or drift too far.
    """

    outcome: Outcome
    why: str
    excluded: str
    effects: tuple[SizeEffect, ...]
    runs: tuple[int, int]
    spread: float | None
    comparable: bool
    differs: tuple[str, ...]
    unknown: tuple[str, ...]
    left_out: tuple[RejectedRow, ...] = ()
    unstable: int = 0


def minimum_detectable(spread: float, runs: int) -> float | None:
    """The relative change that `runs` runs of each state show in four of five tries, when single runs
    differ by `spread` (standard deviation of the logarithm). None with a single run."""
    if runs < 2:
        return None
    return _detectable(spread * math.sqrt(2 / runs), 2 * runs - 2)


def effects_of(before: Times, after: Times) -> tuple[SizeEffect, ...]:
    """Of what both states have; µs, one entry a run."""
    shared = sorted(before.keys() & after.keys())
    return tuple(_effect(key, before[key], after[key]) for key in shared)


def _effect(key: Key, before: Sequence[float], after: Sequence[float]) -> SizeEffect:
    logs = ([math.log(t) for t in before], [math.log(t) for t in after])
    gain = fmean(logs[0]) - fmean(logs[1])
    middle = math.exp(fmean(logs[0])), math.exp(fmean(logs[1]))
    if len(before) < 2 or len(after) < 2:
        return SizeEffect(*key, *middle, math.exp(gain))
    freedom = len(before) + len(after) - 2
    pooled = (
        variance(logs[0]) * (len(before) - 1) + variance(logs[1]) * (len(after) - 1)
    ) / freedom
    error = math.sqrt(pooled * (1 / len(before) + 1 / len(after)))
    half = reach(OUTSIDE, freedom) * error
    return SizeEffect(
        *key,
        *middle,
        math.exp(gain),
        math.exp(gain - half),
        math.exp(gain + half),
        _detectable(error, freedom),
    )


def _detectable(error: float, freedom: int) -> float:
    one_sided = 2 * (1 - POWER)
    return math.exp((reach(OUTSIDE, freedom) + reach(one_sided, freedom)) * error) - 1


def judge(effects: tuple[SizeEffect, ...], *, clash: bool) -> tuple[Outcome, str]:
    """clash: the two sides were not timed alike."""
    if not effects:
        return Outcome.CANNOT_TELL, "no size was measured on the same path before and after"
    if clash:
        return Outcome.CANNOT_TELL, "one side is device-timed and the other is not"
    known = [e for e in effects if e.low is not None and e.high is not None]
    if not known:
        return Outcome.CANNOT_TELL, "one run each cannot tell a change from chance"
    # A change must show in most sizes: single sizes stray by chance.
    faster = sum(e.low is not None and e.low > 1 and e.speedup > 1 + MARGIN for e in known)
    slower = sum(e.high is not None and e.high < 1 and e.speedup < 1 / (1 + MARGIN) for e in known)
    if 2 * faster > len(known) and not slower:
        return Outcome.IMPROVED, f"faster in {faster} of {len(known)} sizes, beyond chance"
    if 2 * slower > len(known) and not faster:
        return Outcome.WORSE, f"slower in {slower} of {len(known)} sizes, beyond chance"
    if all((e.low or 0) > 1 / (1 + MARGIN) and (e.high or 9) < 1 + MARGIN for e in known):
        return Outcome.EQUIVALENT, f"every size is within {MARGIN:.0%}, with 95 % confidence"
    return Outcome.CANNOT_TELL, "the runs differ too much among themselves"


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
    found = [max(v) / min(v) - 1 for state in times for v in state.values() if len(v) > 1]
    return max(found, default=None)


def differs(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    shared = sorted(before.keys() & after.keys())
    return tuple(
        f"{name}: {before[name]} → {after[name]}" for name in shared if before[name] != after[name]
    )


def unknown(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What a comparison rests on and was not recorded on both sides."""
    wanted = ("driver", "torch", "clocks", "other load")
    return tuple(name for name in wanted if name not in before or name not in after)
