"""The scores that closed decisions left in the log, over all sessions a person may see."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from webapp.accounts.models import User
from webapp.diagnosis.claim import Range
from webapp.diagnosis.compare.predictions import Score
from webapp.triage.models import DiagnosisSession, Event, seen_by

ROW_PX = 22.0
CLOSINGS = 1000  # so many decide how far a prediction is believed; older ones are of older rules, too
LEAST, MOST = 0.25, 4.0  # factors that the plot shows


@dataclass(frozen=True, slots=True)
class Scored:
    """One score with where it was made."""

    session: DiagnosisSession
    number: int
    score: Score


def scored(user: User) -> list[Scored]:
    """Those of the newest closings, the newest first."""
    closings = (
        Event.objects.filter(seen_by(user), kind="decision_closed")
        .select_related("session")
        .defer("session__workload")
        .order_by("-at")[:CLOSINGS]
    )
    return [Scored(event.session, event.data["number"], score) for event in closings for score in scores_in(event.data)]


def scores_of(session: DiagnosisSession, number: int) -> list[Score]:
    """Those of one decision; empty while it is open, or when nothing was predicted."""
    closings = session.events.filter(kind="decision_closed").order_by("number")
    found = (data for data in closings.values_list("data", flat=True) if data["number"] == number)
    return next((list(scores_in(data)) for data in found if data.get("scores")), [])


def scores_in(data: dict[str, Any]) -> Iterator[Score]:
    """A score of an older or newer shape is left out."""
    for row in data.get("scores", ()):
        try:
            yield msgspec.convert(row, Score)
        except msgspec.ValidationError:
            continue


@dataclass(frozen=True, slots=True)
class Line:
    """One throughput prediction as it is drawn: its range as a bar, what was seen as a line with a dot.
    y: px; everything else: percent of the width."""

    y: float
    predicted: Range
    seen: Range | None
    dot: float | None
    title: str


@dataclass(frozen=True, slots=True)
class Figure:
    height: float
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]


def figure(found: Sequence[Scored]) -> Figure | None:
    """None without a throughput prediction."""
    ranged = [item.score for item in found if item.score.predicted_range]
    lines = [_line(place, score) for place, score in enumerate(ranged)]
    ticks = tuple((_x(f), f"{f:g} ×") for f in (0.25, 0.5, 1.0, 2.0, 4.0))
    return Figure(ROW_PX * len(lines) + 34, tuple(lines), ticks) if lines else None


def _line(place: int, score: Score) -> Line:
    low, high = score.predicted_range or (1.0, 1.0)
    seen = score.seen_range
    ends = (_x(seen[0]), _x(seen[1])) if seen else None
    dot = sum(ends) / 2 if ends else None
    text = f"predicted {score.predicted}, seen {score.seen}: {score.verdict}"
    left, right = _x(low) - 0.4, _x(high) + 0.4
    return Line(ROW_PX * place + 14, (left, right - left), ends, dot, text)


def _x(factor: float) -> float:
    held = min(MOST, max(LEAST, factor))
    return round(100 * math.log(held / LEAST) / math.log(MOST / LEAST), 2)
