"""Two sweeps of NCCL's settings, before and after: the same settings in both.

What differs inside one sweep is webapp.diagnosis.compare.sweep's answer. Blocks of one sweep share what the
machine did that hour, so a sweep counts as one run of each of its settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from agents.facts.bench import SweepResult
from webapp.diagnosis.compare.effects import Comparison, Key, by_run, concluded


def compare_sweeps(before: Sequence[SweepResult], after: Sequence[SweepResult], *, paired: bool = False) -> Comparison:
    times = (by_run(map(_times, before)), by_run(map(_times, after)))
    return concluded(times, (len(before), len(after)), paired=paired)


def _times(sweep: SweepResult) -> dict[Key, float]:
    """The middle of each setting's blocks; settings that failed do not count."""
    right = {arm.name for arm in sweep.arms if arm.outcome in {"right", ""}}
    logs: dict[Key, list[float]] = {}
    for row in sweep.rows:
        if row.arm in right and row.time_us > 0 and row.unstable is not True:
            logs.setdefault((row.arm, row.size_bytes), []).append(math.log(row.time_us))
    return {key: math.exp(fmean(blocks)) for key, blocks in logs.items()}
