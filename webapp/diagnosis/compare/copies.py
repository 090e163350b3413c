"""Did copies get faster: what two sets of runs can tell, and what they exclude.

Rows of one run share whatever the machine did that minute, so runs are what is counted and not the
samples inside one. Intervals are Student's t on logarithms of the times (Jain 1991, chapter 13).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, variance

from agents.facts.bench import CopyPath, CopyResult, RejectedRow, Timing

# Less than this is of no use to anyone who serves a model.
MARGIN = 0.05
# With single runs only a change far beyond what runs differ by is excluded.
SINGLE_RUN_NOISE = 1.5
# 97.5 % and 80 % quantiles of Student's t by degrees of freedom; beyond the table the normal's.
_T975 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
_T80 = (1.38, 1.06, 0.98, 0.94, 0.92, 0.91, 0.90, 0.89, 0.88, 0.88, 0.88, 0.87, 0.87, 0.87, 0.87)

Key = tuple[CopyPath, int]

_SIZE = re.compile(r"\b(\d{1,4}) ?([KMG])i?B\b(?!/)")


class Outcome(StrEnum):
    IMPROVED = "improved"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True)
class SizeEffect:
    """speedup: time before ÷ time after, above 1 is faster. low, high: its 95 % interval, None with a
    single run. minimum_detectable: the smallest relative change that these runs would show in four of
    five tries; None with a single run."""

    path: CopyPath
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
    arithmetic does not hold.
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
    left_out: tuple[RejectedRow, ...]


def compare_copies(
    before: CopyResult,
    after: CopyResult,
    *,
    more_before: Sequence[CopyResult] = (),
    more_after: Sequence[CopyResult] = (),
) -> Comparison:
    """more_*: further runs of the same state. Only sizes and paths that both states have count."""
    runs = ((before, *more_before), (after, *more_after))
    times = (_times(runs[0]), _times(runs[1]))
    effects = tuple(
        _effect(key, times[0][key], times[1][key])
        for key in sorted(times[0].keys() & times[1].keys())
    )
    clash = _timings(runs[0]) != _timings(runs[1])
    outcome, why = _judge(effects, clash=clash)
    every = runs[0] + runs[1]
    return Comparison(
        outcome,
        why,
        "" if clash else _excluded(effects),
        effects,
        (len(runs[0]), len(runs[1])),
        _spread(times, runs),
        bool(effects) and not clash,
        _differs(before.environment, after.environment),
        _unknown(before.environment, after.environment),
        tuple(row for result in every for row in result.rejected),
    )


def minimum_detectable(spread: float, runs: int) -> float | None:
    """The relative change that `runs` runs of each state show in four of five tries, when single runs
    differ by `spread` (standard deviation of the logarithm). None with a single run."""
    if runs < 2:
        return None
    return _detectable(spread * math.sqrt(2 / runs), 2 * runs - 2)


def _times(results: Sequence[CopyResult]) -> dict[Key, list[float]]:
    """Best time of each size and path, one entry a run."""
    found: dict[Key, list[float]] = {}
    for result in results:
        best: dict[Key, float] = {}
        for row in result.rows:
            if row.time_us > 0 and row.size_bytes > 0:
                key = (row.path, row.size_bytes)
                best[key] = min(row.time_us, best.get(key, math.inf))
        for key, time in best.items():
            found.setdefault(key, []).append(time)
    return found


def _timings(results: Sequence[CopyResult]) -> set[bool]:
    return {row.timing is Timing.DEVICE for result in results for row in result.rows}


def _effect(key: Key, before: list[float], after: list[float]) -> SizeEffect:
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
    half = _quantile(_T975, freedom, 1.96) * error
    return SizeEffect(
        *key,
        *middle,
        math.exp(gain),
        math.exp(gain - half),
        math.exp(gain + half),
        _detectable(error, freedom),
    )


def _detectable(error: float, freedom: int) -> float:
    reach = _quantile(_T975, freedom, 1.96) + _quantile(_T80, freedom, 0.84)
    return math.exp(reach * error) - 1


def _quantile(table: tuple[float, ...], freedom: int, normal: float) -> float:
    return table[freedom - 1] if freedom <= len(table) else normal


def _judge(effects: tuple[SizeEffect, ...], *, clash: bool) -> tuple[Outcome, str]:
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


def _excluded(effects: tuple[SizeEffect, ...]) -> str:
    """What even single runs rule out: noise does not hide a doubling."""
    if not effects:
        return ""
    ends = [end for e in effects for end in (e.low or e.speedup, e.high or e.speedup)]
    if max(ends) < SINGLE_RUN_NOISE and min(ends) > 1 / SINGLE_RUN_NOISE:
        return "a change of 2 × is excluded"
    return ""


def _spread(
    times: tuple[dict[Key, list[float]], dict[Key, list[float]]],
    runs: tuple[tuple[CopyResult, ...], tuple[CopyResult, ...]],
) -> float | None:
    """The largest relative difference between two runs of one state at one size; None: no repeat.

    A row left out for its arithmetic counts with the bandwidth it prints: it makes the spread wider.
    """
    found: list[float] = []
    for state, results in zip(times, runs, strict=True):
        for (path, size), values in state.items():
            printed = [
                size / row.printed_gb_per_s / 1e3
                for result in results
                for row in result.rejected
                if path is CopyPath.PEER and _printed_size(row) == size and row.printed_gb_per_s > 0
            ]
            every = [*values, *printed]
            found += [max(every) / min(every) - 1] if len(every) > 1 else []
    return max(found, default=None)


def _printed_size(row: RejectedRow) -> int | None:
    match = _SIZE.search(row.text)
    return int(match[1]) * 1024 ** (1 + "KMG".index(match[2])) if match else None


def _differs(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    shared = sorted(before.keys() & after.keys())
    return tuple(
        f"{name}: {before[name]} → {after[name]}" for name in shared if before[name] != after[name]
    )


def _unknown(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What a comparison rests on and was not recorded on both sides."""
    wanted = ("driver", "torch", "clocks", "other load")
    return tuple(name for name in wanted if name not in before or name not in after)
