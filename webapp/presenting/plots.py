"""Curves as drawing coordinates: SVG attributes only, because inline styles are forbidden."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

HEIGHT_PX = 200.0
MOST_CURVES = 8
# Labels of the x axis are this far apart, in percent of its width: "768 KiB" fits on a phone, too.
APART = 18.0

Point = tuple[float, float]
Say = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Tick:
    """at: percent of the width on the x axis, px on the y axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """points: "x,y x,y …" for a polyline; dots the same points one by one. x: percent of the width, so that
    a plot is as wide as there is room and its words keep their size; y: px."""

    name: str
    points: str
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """label: what it shows, for screen readers."""

    label: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    height: float = HEIGHT_PX


def log_plot(label: str, curves: Mapping[str, Sequence[Point]], say_x: Say, say_y: Say) -> Plot | None:
    """Both axes logarithmic, the y axis in whole decades; None without a point. Values above 0. label names
    the unit, which the ticks of the y axis leave out."""
    points = [p for curve in curves.values() for p in curve]
    if not points:
        return None
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low_y = 10 ** math.floor(math.log10(min(y for _, y in points)))
    high_y = 10 ** math.ceil(math.log10(max(y for _, y in points) * 1.001))

    def place(point: Point) -> Point:
        x = 100 * _log_share(point[0], low_x, high_x)
        y = HEIGHT_PX * (1 - _log_share(point[1], low_y, high_y))
        return round(x, 2), round(y, 1)

    decades = range(round(math.log10(low_y)), round(math.log10(high_y)) + 1)
    sizes = {place((x, low_y))[0]: say_x(x) for x, _ in sorted(points)}
    return Plot(
        label,
        tuple(_curve(name, sorted(curve), place, say_x, say_y) for name, curve in list(curves.items())[:MOST_CURVES]),
        tuple(Tick(at, sizes[at]) for at in _distant_ticks(list(sizes))),
        tuple(Tick(place((low_x, 10.0**d))[1], _number_text(10.0**d)) for d in decades),
    )


def _number_text(value: float) -> str:
    return f"{value:g}" if value < 1000 else f"{value:,.0f}"


def _curve(name: str, curve: Sequence[Point], place: Callable[[Point], Point], say_x: Say, say_y: Say) -> Curve:
    placed = [place(point) for point in curve]
    return Curve(
        name,
        " ".join(f"{x},{y}" for x, y in placed),
        tuple((*at, f"{say_x(x)}: {say_y(y)}") for at, (x, y) in zip(placed, curve, strict=True)),
    )


def _distant_ticks(places: Sequence[float]) -> list[float]:
    """From the left, those that are far enough from the one before."""
    distant: list[float] = []
    for at in places:
        if not distant or at - distant[-1] >= APART:
            distant.append(at)
    return distant


def _log_share(value: float, low: float, high: float) -> float:
    return 0.5 if low == high else math.log(value / low) / math.log(high / low)
