"""Did copies get faster: what two sets of runs can tell, and what they exclude."""

import math
import re
from collections.abc import Sequence

from agents.facts.bench import CopyPath, CopyResult, CopyRow, RejectedRow, Timing
from webapp.diagnosis.compare.effects import Comparison, Key, Times, by_run, concluded

_SIZE = re.compile(r"\b(\d{1,4}) ?([KMG])i?B\b(?!/)")


def compare_copies(
    before: CopyResult,
    after: CopyResult,
    *,
    more_before: Sequence[CopyResult] = (),
    more_after: Sequence[CopyResult] = (),
    paired: bool = False,
) -> Comparison:
    """more_*: further runs of the same state. Only sizes and paths that both states have count, and of
    them the device-timed rows alone when both states have any. paired: taken in turns."""
    runs = ((before, *more_before), (after, *more_after))
    every = runs[0] + runs[1]
    timed = [any(row.timing is Timing.DEVICE for r in state for row in r.rows) for state in runs]
    times = [by_run(_times(result, device=all(timed)) for result in state) for state in runs]
    return concluded(
        (times[0], times[1]),
        (len(runs[0]), len(runs[1])),
        clash=timed[0] != timed[1],
        paired=paired,
        printed=[_with_rejected(state, results) for state, results in zip(times, runs, strict=True)],
        left_out=tuple(row for result in every for row in result.rejected),
        unstable=sum(row.unstable is True for result in every for row in result.rows),
    )


def _times(result: CopyResult, *, device: bool) -> dict[Key, float]:
    """Best time of each size and path. An unstable row may have two modes (DECISIONS.md, record 8), and is
    left out."""
    best: dict[Key, float] = {}
    for row in filter(_is_usable, result.rows):
        if row.timing is Timing.DEVICE or not device:
            key: Key = (row.path, row.size_bytes)
            best[key] = min(row.time_us, best.get(key, math.inf))
    return best


def _is_usable(row: CopyRow) -> bool:
    return row.time_us > 0 and row.size_bytes > 0 and row.unstable is not True


def _with_rejected(times: Times, results: Sequence[CopyResult]) -> Times:
    """A row left out for its arithmetic counts with the bandwidth it prints: it makes the spread wider."""
    return {
        (path, size): [
            *values,
            *(
                size / row.printed_gb_per_s / 1e3
                for result in results
                for row in result.rejected
                if path == CopyPath.PEER and _printed_size(row) == size and row.printed_gb_per_s > 0
            ),
        ]
        for (path, size), values in times.items()
    }


def _printed_size(row: RejectedRow) -> int | None:
    match = _SIZE.search(row.text)
    return int(match[1]) * 1024 ** (1 + "KMG".index(match[2])) if match else None
