"""Curves as drawing coordinates: SVG attributes only, because inline styles are forbidden."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 460.0, 230.0, 60.0, 30.0, 10.0, 20.0
MOST_CURVES, MOST_TICKS = 8, 6

Point = tuple[float, float]
Say = Callable[[float], str]


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
    """label: what it shows, for who cannot see it."""

    label: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def log_plot(
    label: str, curves: Mapping[str, Sequence[Point]], say_x: Say, say_y: Say
) -> Plot | None:
    """Both axes logarithmic, the y axis in whole decades; None without a point. Values above 0. label names
    the unit, which the ticks of the y axis leave out."""
    points = [p for curve in curves.values() for p in curve]
    if not points:
        return None
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low_y = 10 ** math.floor(math.log10(min(y for _, y in points)))
    high_y = 10 ** math.ceil(math.log10(max(y for _, y in points) * 1.001))

    def place(point: Point) -> Point:
        x = LEFT + (WIDTH - LEFT - RIGHT) * _share(point[0], low_x, high_x)
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * _share(point[1], low_y, high_y)
        return round(x, 1), round(y, 1)

    decades = range(round(math.log10(low_y)), round(math.log10(high_y)) + 1)
    return Plot(
        label,
        tuple(
            _curve(name, sorted(curve), place, say_x, say_y)
            for name, curve in list(curves.items())[:MOST_CURVES]
        ),
        tuple(Tick(place((x, low_y))[0], say_x(x)) for x in _some(sorted({x for x, _ in points}))),
        tuple(Tick(place((low_x, 10.0**d))[1], _plain(10.0**d)) for d in decades),
    )


def _plain(value: float) -> str:
    return f"{value:g}" if value < 1000 else f"{value:,.0f}"


def _curve(
    name: str, curve: Sequence[Point], place: Callable[[Point], Point], say_x: Say, say_y: Say
) -> Curve:
    placed = [place(point) for point in curve]
    return Curve(
        name,
        " ".join(f"{x},{y}" for x, y in placed),
        tuple((*at, f"{say_x(x)}: {say_y(y)}") for at, (x, y) in zip(placed, curve, strict=True)),
    )


def _some(values: Sequence[float]) -> Sequence[float]:
    return values if len(values) <= MOST_TICKS else values[:: math.ceil(len(values) / MOST_TICKS)]


def _share(value: float, low: float, high: float) -> float:
    return 0.5 if low == high else math.log(value / low) / math.log(high / low)
