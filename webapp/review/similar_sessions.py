"""Seen before: sessions of machines like this one with the same answer, and what came of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from webapp.accounts.models import User
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.records.models import DiagnosisSession, Digest
from webapp.review.digests import columns_of
from webapp.review.models import Decision, DecisionState

SHOWN = 5
COUNTED = 1000  # more are "at least 1000": counting all of them would take longer than it tells
# What may be the same besides GPU and verdict, and what it is called.
ALSO = {"board": "board", "driver_major": "driver", "machine_type": "machine type"}


@dataclass(frozen=True, slots=True)
class Alike:
    """same: what else is the same, in words, beside GPU and verdict. decisions: those beyond a draft."""

    session: DiagnosisSession
    same: tuple[str, ...]
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """n: sessions with the same GPU and verdict that this person may see, at most COUNTED; the most alike
    of them, then the newest, first."""

    gpu: str
    verdict: str
    n: int
    alike: tuple[Alike, ...]

    @property
    def at_least(self) -> bool:
        return self.n == COUNTED


def seen_before(session: DiagnosisSession, user: User, result: Diagnosis) -> Memory | None:
    """None without a GPU or a supported hypothesis: then nothing can be said to be alike."""
    mine = columns_of(result)
    if not mine["gpu"] or not mine["verdict"]:
        return None
    digests = _like(session, user, mine)
    rows = _most_alike(digests, mine)
    n = len(rows) if len(rows) < SHOWN else digests.order_by()[:COUNTED].count()
    decisions = _decisions([row.pk for row in rows]) if rows else {}
    alike = tuple(Alike(row.session, _same(row, mine), tuple(decisions.get(row.pk, ()))) for row in rows)
    return Memory(mine["gpu"], mine["verdict"], n, alike)


def _like(session: DiagnosisSession, user: User, mine: dict[str, Any]) -> QuerySet[Digest, Digest]:
    digests = Digest.objects.filter(gpu=mine["gpu"], verdict=mine["verdict"]).exclude(pk=session.pk)
    return digests if user.is_staff else digests.filter(session__members=user)


def _most_alike(digests: QuerySet[Digest, Digest], mine: dict[str, Any]) -> list[Digest]:
    score: Any = Value(0)
    for column in ALSO:
        known = Q(**{column: mine[column]}) if mine[column] else Q(pk=None)
        score = score + Case(When(known, then=1), default=0, output_field=IntegerField())
    ranked = digests.annotate(score=score).select_related("session__owner")
    return list(ranked.order_by("-score", "-session__updated_at")[:SHOWN])


def _same(row: Digest, mine: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{name} {mine[column]}"
        for column, name in ALSO.items()
        if mine[column] and getattr(row, column) == mine[column]
    )


def _decisions(sessions: Sequence[Any]) -> dict[Any, list[Decision]]:
    """The records of these sessions that got beyond a draft, by session."""
    by_session: dict[Any, list[Decision]] = {}
    records = Decision.objects.filter(session__in=sessions).exclude(state=DecisionState.DRAFT)
    for record in records.defer("options", "pins", "context"):
        by_session.setdefault(record.session_id, []).append(record)
    return by_session
