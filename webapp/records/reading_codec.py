"""Readings as JSON columns, and back. What no longer decodes becomes unreadable, never an error."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from agents.facts import Reading, ReadingKind, all_facts

_REREAD = "it was stored by another version; reread the session’s evidence"


@dataclass(frozen=True, slots=True)
class Row:
    """The columns of one StoredReading that hold a reading."""

    fact_id: str
    kind: str
    value: Any
    detail: str
    lines: list[int]
    missing: list[str]


def encode(reading: Reading[Any]) -> Row:
    """Never raises: a value that JSON or the database cannot hold makes the reading unreadable."""
    try:
        value = _storable(reading.value)
    except (TypeError, ValueError, RecursionError) as error:
        reading = Reading(
            reading.fact_id, ReadingKind.UNREADABLE, None, f"the value cannot be stored: {error}", reading.lines
        )
        value = None
    return Row(
        reading.fact_id,
        str(reading.kind),
        value,
        _storable_text(reading.detail),
        list(reading.lines),
        [_storable_text(part) for part in reading.missing],
    )


def decode(row: Row) -> Reading[Any]:
    lines, missing = tuple(row.lines), tuple(row.missing)
    if row.kind not in set(ReadingKind):
        return Reading(row.fact_id, ReadingKind.UNREADABLE, None, f"{row.kind!r}: {_REREAD}", lines)
    if row.kind != ReadingKind.KNOWN:
        return Reading(row.fact_id, ReadingKind(row.kind), None, row.detail, lines, missing)
    fact = all_facts().get(row.fact_id)
    if fact is None:
        return Reading(row.fact_id, ReadingKind.UNREADABLE, None, f"fact retired: {_REREAD}", lines)
    try:
        value = msgspec.convert(row.value, fact.type, str_keys=True)
    except msgspec.ValidationError as error:
        return fact.unreadable(f"{error}: {_REREAD}", lines=lines)
    return Reading(row.fact_id, ReadingKind.KNOWN, value, row.detail, lines, missing)


def _storable(value: Any) -> Any:
    """JSON values without what PostgreSQL refuses: NUL in text, and numbers that are none."""
    text = msgspec.json.encode(value, enc_hook=_plain_mapping)
    return msgspec.json.decode(text.replace(b"\\u0000", b"\\ufffd"))


def _plain_mapping(value: Any) -> dict[Any, Any]:
    """msgspec writes plain dicts only; parsers may hand out any mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _storable_text(text: str) -> str:
    """Text a database takes: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")
