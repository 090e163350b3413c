"""How the samples of a result spread, in a sentence."""

from collections.abc import Iterable
from typing import Any

from django import template

register = template.Library()


@register.filter
def outlying(rows: Iterable[Any]) -> str:
    """In how many of the rows that were counted a sample is an outlier; "" where none was counted."""
    counts = [getattr(row, "figures", row).outliers for row in rows]
    counted = [outliers for outliers in counts if outliers is not None]
    with_some = sum(outliers > 0 for outliers in counted)
    return f"Rows with outliers: {with_some} of {len(counted)}." if counted else ""
