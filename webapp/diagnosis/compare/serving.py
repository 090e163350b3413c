"""Did serving get faster: the time per output token at each number of requests at once."""

from collections.abc import Callable, Sequence

from agents.facts.bench import ServingRow
from webapp.diagnosis.compare.effects import Comparison, Key, by_run, concluded

Ladder = tuple[ServingRow, ...]
_DOUBTFUL = 0.05  # share of requests without a whole answer, above which a rung is not compared


def compare_serving(before: Sequence[Ladder], after: Sequence[Ladder], *, paired: bool = False) -> Comparison:
    """One ladder a run. Times are µs per output token of all requests together."""
    times = (by_run(map(_times, before)), by_run(map(_times, after)))
    return concluded(times, (len(before), len(after)), paired=paired)


def rung(concurrency: int) -> str:
    return f"{concurrency} at once"


def _times(ladder: Ladder) -> dict[Key, float]:
    return by_rung(ladder, lambda row: 1e6 / row.output_tokens_per_s if row.output_tokens_per_s else None)


def by_rung(ladder: Ladder, figure: Callable[[ServingRow], float | None]) -> dict[Key, float]:
    """The figure of each rung's first row; rows that failed or lack it do not count."""
    figures: dict[Key, float] = {}
    for row in ladder:
        if row.concurrency and not failing(row) and (value := figure(row)) is not None:
            figures.setdefault((rung(row.concurrency), 0), value)
    return figures


def failing(row: ServingRow) -> bool:
    """Whether too many of its requests brought no whole answer."""
    return bool(row.errors and row.errors > _DOUBTFUL * (row.requests or row.errors))
