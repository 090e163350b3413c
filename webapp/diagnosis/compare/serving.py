"""Did serving get faster: the time per output token at each number of requests at once."""

from __future__ import annotations

from collections.abc import Sequence

from agents.facts.bench import ServingRow
from webapp.diagnosis.compare.effects import Comparison, concluded

Ladder = tuple[ServingRow, ...]
Times = dict[tuple[str, int], list[float]]
_DOUBTFUL = 0.05  # share of requests without a whole answer, above which a rung is not compared


def compare_serving(before: Sequence[Ladder], after: Sequence[Ladder], *, paired: bool = False) -> Comparison:
    """One ladder a run. Times are µs per output token of all requests together."""
    times = (_times(before), _times(after))
    return concluded(times, (len(before), len(after)), paired=paired)


def rung(concurrency: int) -> str:
    return f"{concurrency} at once"


def _times(ladders: Sequence[Ladder]) -> Times:
    times: Times = {}
    for ladder in ladders:
        own: dict[tuple[str, int], float] = {}
        for row in ladder:
            if row.concurrency and row.output_tokens_per_s and not failing(row):
                own.setdefault((rung(row.concurrency), 0), 1e6 / row.output_tokens_per_s)
        for key, time in own.items():
            times.setdefault(key, []).append(time)
    return times


def failing(row: ServingRow) -> bool:
    """Whether too many of its requests brought no whole answer."""
    return bool(row.errors and row.errors > _DOUBTFUL * (row.requests or row.errors))
