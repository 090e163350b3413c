"""The list of sessions, newest first, searched and narrowed, a page at a time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery, Value

from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, SessionMember
from webapp.records.models.session import SessionQuerySet
from webapp.records.session_search import Criteria, sessions_matching

PER_PAGE = 50
# Above this number, going through all sessions in order is faster than sorting one's own.
MANY = 2000


@dataclass(frozen=True, slots=True)
class Page:
    """after: what leads to the next page, "" on the last. cut: more texts have these words than are looked
    at, so that older ones may be missing."""

    sessions: list[DiagnosisSession]
    after: str
    cut: bool


def page(user: User, criteria: Criteria, before: str = "") -> Page:
    """before: `after` of the page before; any other text leads to the first page."""
    sessions, cut = sessions_matching(_visible_sessions(user), user, criteria)
    sessions = _page_after(sessions, before).select_related("owner", "digest")
    rows = list(sessions.order_by("-updated_at", "-id")[: PER_PAGE + 1])
    more = len(rows) > PER_PAGE
    last = rows[PER_PAGE - 1] if more else None
    return Page(rows[:PER_PAGE], f"{last.updated_at.isoformat()}_{last.pk}" if last else "", cut)


def _visible_sessions(user: User) -> SessionQuerySet:
    """The sessions of `visible_to`, by a query that suits their number."""
    mine = SessionMember.objects.filter(user=user)
    if user.is_staff or mine[:MANY].count() < MANY:
        return DiagnosisSession.objects.visible_to(user)
    role = mine.filter(session=OuterRef("pk")).values("role")[:1]
    sessions = DiagnosisSession.objects.annotate(asker_id=Value(user.pk), role_of_asker=Subquery(role))
    return sessions.filter(role_of_asker__isnull=False)


def _page_after(sessions: SessionQuerySet, before: str) -> SessionQuerySet:
    at, _, key = before.partition("_")
    try:
        moment, last = datetime.fromisoformat(at).astimezone(UTC), UUID(key)
    except (ValueError, OverflowError):
        return sessions
    return sessions.filter(Q(updated_at__lt=moment) | Q(updated_at=moment, pk__lt=last))
