"""Two sweeps of NCCL's settings, before and after: the same settings in both.

What differs inside one sweep is webapp.diagnosis.compare.sweep's answer. Blocks of one sweep share what the
machine did that hour, so a sweep counts as one run of each of its settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from agents.facts.bench import SweepResult
from webapp.diagnosis.compare.effects import Comparison, concluded

Times = dict[tuple[str, int], list[float]]


def compare_sweeps(before: Sequence[SweepResult], after: Sequence[SweepResult], *, paired: bool = False) -> Comparison:
    times = (_times(before), _times(after))
    return concluded(times, (len(before), len(after)), paired=paired)


def _times(sweeps: Sequence[SweepResult]) -> Times:
    """The middle of each setting's blocks, one entry a sweep; settings that failed do not count."""
    times: Times = {}
    for sweep in sweeps:
        right = {arm.name for arm in sweep.arms if arm.outcome in {"right", ""}}
        own: dict[tuple[str, int], list[float]] = {}
        for row in sweep.rows:
            if row.arm in right and row.time_us > 0 and row.unstable is not True:
                own.setdefault((row.arm, row.size_bytes), []).append(math.log(row.time_us))
        for key, logs in own.items():
            times.setdefault(key, []).append(math.exp(fmean(logs)))
    return times
