"""JSON lines of the load on a serving engine (schema peerpath.serving_load/1): one row a rung."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.facts.bench import ServingRow
from agents.parsing import payload_lines
from agents.parsing.payload_lines import PayloadLines, number_of, text_of

SCHEMA = "peerpath.serving_load/1"
_FIGURES = (
    "output_tokens_per_s",
    "total_tokens_per_s",
    "tpot_p95_ms",
    "tpot_p99_ms",
    "ttft_ms",
    "ttft_p95_ms",
    "ttft_p99_ms",
    "itl_ms",
    "itl_p95_ms",
    "itl_p99_ms",
    "tokens_per_event",
    "prompt_tokens",
    "completion_tokens",
    "power_w",
    "tokens_per_joule",
)


@dataclass(frozen=True, slots=True)
class ServingLines:
    """rows: the rungs. failures: sentences about requests without a whole answer."""

    rows: tuple[ServingRow, ...]
    lines: tuple[int, ...]
    failures: tuple[str, ...]
    payload: PayloadLines


def parse(text: str) -> ServingLines:
    payload = payload_lines.read(text, SCHEMA)
    rungs = [(number, row) for number, row in payload.rows if row.get("rung") is True]
    read = [(number, row, _parse_row(row)) for number, row in rungs]
    return ServingLines(
        tuple(row for _, _, row in read if row),
        tuple(number for number, _, row in read if row),
        tuple(words for _, raw, row in read if row for words in _failures(raw)),
        payload,
    )


def _parse_row(fields: Mapping[str, Any]) -> ServingRow | None:
    """The row; None without a concurrency."""
    concurrency, requests = _count(fields.get("concurrency")), _count(fields.get("requests"))
    if not concurrency:
        return None
    figures = {name: _positive(fields.get(name)) for name in _FIGURES}
    return ServingRow(
        concurrency,
        time_per_output_token_ms=_positive(fields.get("tpot_ms")),
        requests=requests,
        errors=_count(fields.get("errors")),
        **figures,
    )


def _failures(fields: Mapping[str, Any]) -> list[str]:
    kinds = fields.get("failures")
    if not isinstance(kinds, dict):
        return []
    at = text_of(fields["concurrency"])
    counted = [(text_of(kind)[:80], _count(n)) for kind, n in list(kinds.items())[:8]]
    return [f"{n} requests at {at} at once: {kind}" for kind, n in counted if n]


def _count(value: Any) -> int | None:
    count = number_of(value)
    return int(count) if count is not None and 0 <= count < 1e12 else None


def _positive(value: Any) -> float | None:
    figure = number_of(value)
    return figure if figure is not None and figure >= 0 else None
