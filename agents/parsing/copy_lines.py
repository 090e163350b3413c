"""JSON lines of the copy payload (schema peerpath.copy/1): a header, one line a row, an end line.

A note says what a reader should know; one with "lost" says which rows are not there, and why.
A run that was cut still gives its rows; what is missing is said.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.facts.bench import CopyPath, CopyResult, CopyRow, Timing

SCHEMA = "peerpath.copy/1"


@dataclass(frozen=True, slots=True)
class CopyLines:
    """error: why the payload refused, with what to do about it. ended: it reached its last line.
    stopped: its watchdog ended it, and why. lost: what could not be measured, and why."""

    result: CopyResult
    lines: tuple[int, ...]
    error: str = ""
    ended: bool = False
    stopped: str = ""
    lost: tuple[str, ...] = ()


def parse(text: str) -> CopyLines:
    rows: list[CopyRow] = []
    environment: dict[str, str] = {}
    notes: list[str] = []
    lost: list[str] = []
    error = stopped = ""
    ended = False
    for number, line in enumerate(text.splitlines(), 1):
        said = _object(line)
        if isinstance(said.get("environment"), dict) and said.get("schema") == SCHEMA:
            environment.update({str(k): _text(v) for k, v in said["environment"].items()})
        elif "error" in said:
            error = "; ".join(filter(None, (_text(said["error"]), _text(said.get("fix", "")))))
        elif "path" in said:
            rows.extend(_row(said, number))
        if "note" in said:
            (lost if said.get("lost") is True else notes).append(_text(said["note"]))
        stopped = _text(said.get("stopped", stopped))
        ended = ended or said.get("end") is True
    if notes:
        environment["notes"] = "; ".join(notes)
    lines = tuple(row.line for row in rows)
    result = CopyResult(tuple(rows), (), environment)
    return CopyLines(result, lines, error, ended, stopped, tuple(lost))


def _object(line: str) -> dict[str, Any]:
    stripped = line.strip()
    if not stripped.startswith("{"):
        return {}
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _row(said: Mapping[str, Any], number: int) -> list[CopyRow]:
    """The row, or nothing when a figure that every row has is not there."""
    size, time_us = _number(said.get("size_bytes")), _number(said.get("time_us"))
    known = said.get("path") in set(CopyPath) and said.get("timing") in set(Timing)
    if not known or size is None or time_us is None or size < 0 or time_us <= 0:
        return []
    samples = _number(said.get("samples"))
    peer, unstable = said.get("peer_access"), said.get("unstable")
    return [
        CopyRow(
            CopyPath(said["path"]),
            _text(said.get("source", "?")),
            _text(said.get("destination", "?")),
            int(size),
            time_us,
            Timing(said["timing"]),
            samples=None if samples is None else int(samples),
            line=number,
            method=_text(said.get("method", "")),
            peer_access=peer if isinstance(peer, bool) else None,
            unstable=unstable if isinstance(unstable, bool) else None,
            p95_us=_number(said.get("p95_us")),
            p99_us=_number(said.get("p99_us")),
            ci_low_us=_number(said.get("ci_low_us")),
            ci_high_us=_number(said.get("ci_high_us")),
            cv=_number(said.get("cv")),
            gb_per_s=_number(said.get("gb_per_s")),
        )
    ]


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
