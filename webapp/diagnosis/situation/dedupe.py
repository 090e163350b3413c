"""One measurement that was given twice is one run: what a reader takes for chance is counted in runs.

By its figures, because the same output comes with another prompt, or once more in a longer paste. Two runs
that agree in every figure to the last printed digit count as one, too: that errs towards “cannot tell”.
"""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from webapp.diagnosis.facts import Sourced

PLACES = frozenset({"line", "text"})  # where a figure stands, and how its line reads


def distinct_runs(items: Iterable[Sourced]) -> tuple[Sourced, ...]:
    """The first of those with the same figures, in their order."""
    seen: dict[tuple[str, int, Any], Sourced] = {}
    for item in items:
        seen.setdefault((item.reading.fact_id, item.epoch, _figures(item.reading.value)), item)
    return tuple(seen.values())


def _figures(value: Any) -> Any:
    rows = value if isinstance(value, tuple) else getattr(value, "rows", None)
    if not rows:
        return id(value)
    return tuple(_row(row) for row in rows)


def _row(row: Any) -> Any:
    if not is_dataclass(row):
        return row
    return tuple(repr(getattr(row, f.name)) for f in fields(row) if f.name not in PLACES)
