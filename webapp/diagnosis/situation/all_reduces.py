"""What an all-reduce takes on this machine, by size, ranks and transport.

Source: percentile bootstrap, Efron and Tibshirani 1993, chapter 13.
"""

from dataclasses import dataclass

from agents.facts.bench import ALLREDUCE, AllReduceResult, AllReduceRow, Timing
from webapp.diagnosis.claim import Range
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation.copy_curve import time_at

Ends = tuple[float, float, float]
"""The low end of an interval, its median and its high end."""


@dataclass(frozen=True, slots=True)
class AllReduceTime:
    """One all-reduce as measured here. medians_us: lowest to highest. us: the same with the ends of their
    95 % intervals, so never narrower; equal where no row has an interval."""

    medians_us: Range
    us: Range


def all_reduce(facts: Facts, size_bytes: float, ranks: int, *, p2p: bool) -> AllReduceTime | None:
    """Device-timed all-reduces inside a CUDA graph at this size, of the newest epoch that has any."""
    by_epoch: dict[int, list[Ends]] = {}
    for item in facts.all(ALLREDUCE):
        result: AllReduceResult | None = item.reading.value
        if result and _took_p2p(result) is p2p:
            by_epoch.setdefault(item.epoch, []).extend(_times_us(result, size_bytes, ranks))
    times = next((by_epoch[epoch] for epoch in sorted(by_epoch, reverse=True) if by_epoch[epoch]), [])
    if not times:
        return None
    medians = [median for _, median, _ in times]
    ends = [end for time in times for end in time]
    return AllReduceTime((min(medians), max(medians)), (min(ends), max(ends)))


def _took_p2p(result: AllReduceResult) -> bool:
    """Allowed is not taken: where NCCL’s log names the transport, it decides."""
    return bool(result.p2p) and result.environment.get("transport", "P2P").upper().startswith("P2P")


def _times_us(result: AllReduceResult, size_bytes: float, ranks: int) -> list[Ends]:
    """At most two: in place and out of place. Eager timings are launch cost, and are left out."""
    ends = []
    for in_place in (False, True):
        rows = {
            row.size_bytes: _ends_us(row)
            for row in result.rows
            if row.in_place is in_place and row.ranks == ranks and row.time_us > 0
            if row.graph or (row.graph is None and result.timing is Timing.DEVICE)
        }
        low, median, high = (
            time_at(tuple((size, rows[size][end]) for size in sorted(rows)), size_bytes) for end in range(3)
        )
        if low is not None and median is not None and high is not None:
            ends.append((low, median, high))
    return ends


def _ends_us(row: AllReduceRow) -> Ends:
    """An end that was not printed, or that the median lies beyond, is the median."""
    printed = [end for end in (row.ci_low_us, row.ci_high_us) if end and end > 0]
    ends = (row.time_us, *printed)
    return min(ends), row.time_us, max(ends)
