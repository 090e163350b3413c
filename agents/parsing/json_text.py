"""JSON in a paste: a whole file, one object a line, or a file whose first brace was lost.

Only whole values count; invalid text is left out, and nothing is decoded twice.
"""

import json
import re
from typing import Any

_LINE_CAP = 4_000_000
_QUOTE = re.compile(r"^[ \t]{0,8}(?:> ?)+", re.MULTILINE)


def values(text: str) -> tuple[tuple[int, Any], ...]:
    """(1-based line, value) of every JSON object or array, in order."""
    if text.lstrip().startswith(">"):  # quoted in a mail
        text = _QUOTE.sub("", text)
    whole = _whole_value(text)
    if whole is not None:
        return (whole,)
    parsed_values: list[tuple[int, Any]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line[:1] in {"{", "["} and line[-1:] in {"}", "]", ","} and len(line) <= _LINE_CAP:
            value = _decode_json(line.rstrip(","))
            if isinstance(value, dict | list) and value:
                parsed_values.append((number, value))
    return tuple(parsed_values)


def _whole_value(text: str) -> tuple[int, Any] | None:
    """The value from the first brace to the last one, if that is one value."""
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if not starts or end <= min(starts):
        return None
    start = min(starts)
    value = _decode_json(text[start:end])
    if isinstance(value, dict | list):
        return text.count("\n", 0, start) + 1, value
    return None


def _decode_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def number(value: Any) -> float | None:
    """A finite number, also one written as a string; never a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return result if abs(result) < float("inf") else None


def at(value: Any, *path: str) -> Any:
    """value[path[0]][path[1]]… or None where an object lacks the key."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
