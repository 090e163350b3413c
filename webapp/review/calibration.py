"""The scores that closed decisions left in the log, over all sessions a person may see."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from webapp.accounts.models import User
from webapp.diagnosis.compare.predictions import Score
from webapp.records.models import DiagnosisSession, Event, seen_by

CLOSINGS = 1000  # so many decide how far a prediction is believed; older ones are of older rules, too


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
    closings_of = (data for data in closings.values_list("data", flat=True) if data["number"] == number)
    return next((list(scores_in(data)) for data in closings_of if data.get("scores")), [])


def scores_in(data: dict[str, Any]) -> Iterator[Score]:
    """A score of an older or newer shape is left out."""
    for row in data.get("scores", ()):
        try:
            yield msgspec.convert(row, Score)
        except msgspec.ValidationError:
            continue
