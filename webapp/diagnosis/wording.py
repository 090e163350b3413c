"""How ranges, gains and causes read in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from webapp.diagnosis.case import Bound, Gate, GateState
from webapp.diagnosis.claim import Range


def span(value: Range, digits: int = 1) -> str:
    """ "2.1–30.0", or "90.9" when both ends read the same."""
    low, high = f"{value[0]:.{digits}f}", f"{value[1]:.{digits}f}"
    return low if low == high else f"{low}–{high}"


def factor(value: Range) -> str:
    """A gain as a range: "1.00–1.40 ×", with these digits wherever it stands."""
    return f"{span(value, 2)} ×"


def most(value: Range) -> str:
    """A gain's high end, after "at most": "1.49 ×"."""
    return f"{value[1]:.2f} ×"


def unless(bound: Bound) -> str:
    """What would break the bound, to follow any gain that is said; "" where nothing is left open."""
    return f", {bound.unless}" if bound.unless else ""


def effects(bounds: Iterable[Bound]) -> str:
    """What P2P could bring, by load: "1.00–1.40 × for a single stream, 1.00–1.12 × at 64 requests"."""
    found = [
        f"{factor(bound.max_gain_p2p)} {load(bound)}" for bound in bounds if bound.max_gain_p2p
    ]
    return ", ".join(found)


def load(bound: Bound) -> str:
    return "for a single stream" if bound.concurrency == 1 else f"at {bound.concurrency} requests"


def why_no_clique(ladder: Iterable[Gate]) -> str:
    """ "because" once a clique was looked for and is absent; before, the driver's answer points to it."""
    absent = any(g.gate == "granted" and g.state is GateState.FAIL for g in ladder)
    return "because" if absent else "most likely because"


def percent(value: Range) -> str:
    """Shares 0…1 as "2.3–33 %"; below 10 % with one digit."""
    low, high = _share(value[0]), _share(value[1])
    return f"{low} %" if low == high else f"{low}–{high} %"


def _share(value: float) -> str:
    return f"{value * 100:.1f}" if value < 0.1 else f"{value * 100:.0f}"
