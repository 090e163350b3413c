"""JSON lines of the copy payload (schema peerpath.copy/1): a header, one line a row, an end line.

A note informs the reader; a note with "lost" names missing rows and the reason. A run that was cut still gives its
rows, and the reading names what is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.facts.bench import CopyPath, CopyResult, CopyRow, Timing
from agents.parsing import payload_lines
from agents.parsing.payload_lines import number_of, stats_of, text_of

SCHEMA = "peerpath.copy/1"


@dataclass(frozen=True, slots=True)
class CopyLines:
    """error: why the payload refused, and how to fix it. ended: it reached its last line. stopped: why its watchdog
    ended it. lost: what could not be measured, and why."""

    result: CopyResult
    lines: tuple[int, ...]
    error: str = ""
    ended: bool = False
    stopped: str = ""
    lost: tuple[str, ...] = ()


def parse(text: str) -> CopyLines:
    payload = payload_lines.read(text, SCHEMA)
    rows = tuple(row for number, fields in payload.rows for row in _parse_row(fields, number))
    environment = dict(payload.environment)
    if payload.notes:
        environment["notes"] = "; ".join(payload.notes)
    lines = tuple(row.line for row in rows)
    result = CopyResult(rows, (), environment)
    return CopyLines(result, lines, payload.error, payload.ended, payload.stopped, tuple(payload.lost))


def _parse_row(fields: Mapping[str, Any], number: int) -> list[CopyRow]:
    """The row, or nothing when a required figure is missing."""
    size, time_us = number_of(fields.get("size_bytes")), number_of(fields.get("time_us"))
    known = fields.get("path") in set(CopyPath) and fields.get("timing") in set(Timing)
    if not known or size is None or time_us is None or size < 0 or time_us <= 0:
        return []
    peer = fields.get("peer_access")
    return [
        CopyRow(
            CopyPath(fields["path"]),
            text_of(fields.get("source", "?")),
            text_of(fields.get("destination", "?")),
            int(size),
            time_us,
            Timing(fields["timing"]),
            **stats_of(fields),
            line=number,
            method=text_of(fields.get("method", "")),
            peer_access=peer if isinstance(peer, bool) else None,
            gb_per_s=number_of(fields.get("gb_per_s")),
        )
    ]
