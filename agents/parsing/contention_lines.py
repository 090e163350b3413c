"""JSON lines of the contention payload (schema peerpath.contention/1): a header, one line a pattern and size.

The time of one copy alone is the mean of its rows of the same size and peer access: one row is measured before the
patterns and one after.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

from agents.facts.bench import ContentionResult, ContentionRow, Pattern
from agents.parsing import payload_lines
from agents.parsing.payload_lines import PayloadLines, number_of, stats_of

SCHEMA = "peerpath.contention/1"
_BASE = {
    Pattern.ALL_FROM_HOST: Pattern.FROM_HOST,
    Pattern.FROM_HOST: Pattern.FROM_HOST,
    Pattern.ALL_TO_HOST: Pattern.TO_HOST,
    Pattern.TO_HOST: Pattern.TO_HOST,
}
_MOST_FLOWS = 10_000


def parse(text: str) -> tuple[ContentionResult, PayloadLines]:
    payload = payload_lines.read(text, SCHEMA)
    rows = [row for number, line in payload.rows for row in _parse_row(line, number)]
    environment = dict(payload.environment)
    if payload.notes:
        environment["notes"] = "; ".join(payload.notes)
    return ContentionResult(_beside_alone(rows), environment), payload


def _beside_alone(rows: list[ContentionRow]) -> tuple[ContentionRow, ...]:
    alone: dict[tuple[Pattern, int, bool | None], list[float]] = defaultdict(list)
    for row in rows:
        if row.flows == 1:
            alone[_alone_key(row)].append(row.time_us)
    means = {key: fmean(times) for key, times in alone.items()}
    return tuple(replace(row, alone_us=means.get(_alone_key(row))) for row in rows)


def _alone_key(row: ContentionRow) -> tuple[Pattern, int, bool | None]:
    """The key of the row's reference, a copy alone."""
    return _BASE.get(row.pattern, Pattern.ALONE), row.size_bytes, row.peer_access


def _parse_row(line: Mapping[str, Any], number: int) -> list[ContentionRow]:
    """The row, or nothing when a required figure is missing."""
    flows, size, time_us = (number_of(line.get(k)) for k in ("flows", "size_bytes", "time_us"))
    if line.get("pattern") not in set(Pattern) or not flows or not size or not time_us:
        return []
    if not 1 <= flows <= _MOST_FLOWS or min(size, time_us) <= 0:
        return []
    rate = number_of(line.get("gb_per_s"))
    peer = line.get("peer_access")
    return [
        ContentionRow(
            Pattern(line["pattern"]),
            int(flows),
            int(size),
            time_us,
            rate if rate is not None else int(flows) * int(size) / time_us / 1e3,
            **stats_of(line),
            peer_access=peer if isinstance(peer, bool) else None,
            line=number,
        )
    ]
