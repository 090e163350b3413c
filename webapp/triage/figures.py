"""Numbers turned into drawing coordinates. SVG attributes only: inline styles are forbidden."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agents.facts.bench import CopyPath, CopyResult, CopyRow, Timing
from webapp.diagnosis.case import Bound, Gate, Path
from webapp.diagnosis.claim import Range

BAR_WIDTH = 100.0


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of the time bar. x, width: percent of the bar. kind: floor, comm, unexplained.

    text: what fits into it, "" when nothing does.
    """

    kind: str
    x: float
    width: float
    text: str
    title: str

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def time_bar(bound: Bound) -> tuple[Segment, ...]:
    """Floor and communication at their high ends, the rest unexplained: what is claimed at most."""
    if bound.step_ms is None:
        return ()
    step = sum(bound.step_ms) / 2
    parts: list[tuple[str, str, Range | None]] = [
        ("floor", "weight reads", bound.floor_ms),
        ("comm", "communication", bound.comm_ms),
    ]
    found: list[Segment] = []
    x = 0.0
    for kind, label, value in parts:
        width = min(BAR_WIDTH - x, BAR_WIDTH * value[1] / step) if value else 0.0
        if value and width > 0:
            text = f"{_ms(value)}"
            found.append(
                Segment(kind, x, width, _fitting(width, label, text), f"{label} {text} ms")
            )
            x += width
    label, text = "unexplained", _ms(bound.unexplained_ms) if bound.unexplained_ms else "?"
    width = BAR_WIDTH - x
    if width > 0:
        found.append(
            Segment(
                "unexplained", x, width, _fitting(width, label, f"{text} ms"), f"{label} {text} ms"
            )
        )
    return tuple(found)


def _fitting(width: float, label: str, text: str) -> str:
    per_letter = 1.05  # percent of a bar as wide as the page has room for at 1440 px
    for candidate in (f"{label} {text}", text):
        if len(candidate) * per_letter < width:
            return candidate
    return ""


def _ms(value: Range) -> str:
    low, high = (f"{end:.0f}" if end >= 20 else f"{end:.1f}" for end in value)
    return low if low == high else f"{low}–{high}"


def ladder_rows(ladder: Sequence[Gate]) -> list[tuple[Path, list[Gate]]]:
    """The gates by path, in ladder order; a path is left out when there is nothing to say on it."""
    rows = []
    for path in Path:
        gates = [gate for gate in ladder if gate.path is path]
        if gates:
            rows.append((path, gates))
    return rows


# --- copy plot ------------------------------------------------------------------------------------

CONTROLS = frozenset({CopyPath.SYNCHRONISE, CopyPath.LAUNCH})
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640.0, 260.0, 62.0, 30.0, 10.0, 30.0


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """points: "x,y x,y …" for a polyline; dots the same points one by one."""

    name: str
    points: str
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def size_text(size_bytes: float) -> str:
    """ "12 KiB", "4 MiB"; exact multiples only get a whole number."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return (
                f"{size_bytes / factor:g} {unit}"
                if size_bytes % factor == 0
                else f"{size_bytes / factor:.1f} {unit}"
            )
    return f"{size_bytes:g} B"


def copy_plot(results: Iterable[tuple[str, CopyResult]]) -> Plot | None:
    """Time against size on log axes, one curve for each path and way of timing; None without rows."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for prefix, result in results:
        for row in _one_pair_each(result.rows):
            name = " ".join(filter(None, [prefix, _curve_name(row)]))
            curves.setdefault(name, []).append((row.size_bytes, row.time_us))
    points = [p for curve in curves.values() for p in curve]
    if not points:
        return None
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low_y = 10 ** math.floor(math.log10(min(y for _, y in points)))
    high_y = 10 ** math.ceil(math.log10(max(y for _, y in points) * 1.001))

    def px(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * _share(x, low_x, high_x)

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * _share(y, low_y, high_y)

    drawn = tuple(
        Curve(
            name,
            " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in sorted(curve)),
            tuple(
                (round(px(x), 1), round(py(y), 1), f"{size_text(x)}: {y:.1f} µs")
                for x, y in sorted(curve)
            ),
        )
        for name, curve in list(curves.items())[:8]
    )
    sizes = sorted({x for x, _ in points})
    shown = sizes if len(sizes) <= 7 else sizes[:: math.ceil(len(sizes) / 7)]
    decades = range(round(math.log10(low_y)), round(math.log10(high_y)) + 1)
    return Plot(
        drawn,
        tuple(Tick(round(px(x), 1), size_text(x)) for x in shown),
        tuple(Tick(round(py(10**d), 1), f"{10**d:g} µs") for d in decades),
    )


def _one_pair_each(rows: Iterable[CopyRow]) -> Iterator[CopyRow]:
    """Rows that can be drawn, of the first pair of GPUs measured on each path; the table has all."""
    first: dict[str, tuple[str, str]] = {}
    for row in rows:
        if row.path in CONTROLS or row.size_bytes <= 0 or row.time_us <= 0:
            continue
        pair = (row.source, row.destination)
        if first.setdefault(_curve_name(row), pair) == pair:
            yield row


def _curve_name(row: CopyRow) -> str:
    how = {Timing.DEVICE: "device-timed", Timing.HOST_SYNC: "with synchronise"}
    access = {None: "", True: " on", False: " off"}[row.peer_access]
    access = access if row.path is CopyPath.PEER else ""
    return f"{row.path.value.replace('_', ' ')}{access}, {how.get(row.timing, 'as printed')}"


def _share(value: float, low: float, high: float) -> float:
    return 0.5 if low == high else math.log(value / low) / math.log(high / low)
