"""Did all-reduces get faster: the same question as for copies, of what was timed in a CUDA graph."""

from collections.abc import Sequence

from agents.facts.bench import AllReduceResult, AllReduceRow, Timing
from webapp.diagnosis.compare.effects import Comparison, Key, by_run, concluded


def compare_allreduces(
    before: AllReduceResult,
    after: AllReduceResult,
    *,
    more_before: Sequence[AllReduceResult] = (),
    more_after: Sequence[AllReduceResult] = (),
    paired: bool = False,
) -> Comparison:
    """more_*: further runs of the same state. Eager rows cannot tell P2P from none (DESIGN.md, 7), so they
    count only when neither state has any other. paired: taken in turns."""
    runs = ((before, *more_before), (after, *more_after))
    timed = [any(_on_device(result, row) for result in s for row in result.rows) for s in runs]
    times = [by_run(_times(result, device=all(timed)) for result in state) for state in runs]
    return concluded(
        (times[0], times[1]),
        (len(runs[0]), len(runs[1])),
        clash=timed[0] != timed[1],
        paired=paired,
        unstable=sum(row.unstable is True for s in runs for result in s for row in result.rows),
    )


def _on_device(result: AllReduceResult, row: AllReduceRow) -> bool:
    """Inside a graph; queued rows are what launching costs where messages are small."""
    return bool(row.graph) or (row.graph is None and result.timing is Timing.DEVICE)


def _times(result: AllReduceResult, *, device: bool) -> dict[Key, float]:
    """Times by place and size; sums that are wrong and unstable rows do not count."""
    times: dict[Key, float] = {}
    for row in result.rows:
        same_clock = _on_device(result, row) is device
        if same_clock and row.time_us > 0 and row.unstable is not True and not row.wrong:
            times.setdefault((_row_name(row), row.size_bytes), row.time_us)
    return times


def _row_name(row: AllReduceRow) -> str:
    place = "in place" if row.in_place else "out of place"
    return f"{row.ranks} GPUs, {place}"
