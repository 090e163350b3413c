"""How ranges read in a sentence."""

from __future__ import annotations

from webapp.diagnosis.claim import Range


def span(value: Range, digits: int = 1) -> str:
    """ "2.1–30.0", or "90.9" when both ends read the same."""
    low, high = f"{value[0]:.{digits}f}", f"{value[1]:.{digits}f}"
    return low if low == high else f"{low}–{high}"


def percent(value: Range) -> str:
    """Shares 0…1 as "2.3–33 %"; below 10 % with one digit."""
    low, high = _share(value[0]), _share(value[1])
    return f"{low} %" if low == high else f"{low}–{high} %"


def _share(value: float) -> str:
    return f"{value * 100:.1f}" if value < 0.1 else f"{value * 100:.0f}"
