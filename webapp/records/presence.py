"""The members of a session, who looks at it now, and which events are new to each."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import OperationalError, connection
from django.db.models import FilteredRelation, Q
from django.utils import timezone

from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, SessionMember, Visit

HERE = timedelta(seconds=60)  # the page reports itself every 15 s while it is open
AWAY = timedelta(minutes=20)  # after that, coming back is another look
SOON_S = 0.5

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Person:
    """role: a member's, None of an administrator who looks. at, seen, new_after: as in models.Visit, None
    of a member who never looked."""

    key: int
    name: str
    role: str | None
    at: datetime | None
    seen: int | None
    new_after: int | None


def people_of(session: DiagnosisSession) -> list[Person]:
    """Members and people who looked, by name."""
    members = SessionMember.objects.filter(session=session).values("user")
    looked = Visit.objects.filter(session=session).values("user")
    people = User.objects.filter(pk__in=members.union(looked)).annotate(
        mine=FilteredRelation("sessionmember", condition=Q(sessionmember__session=session)),
        look=FilteredRelation("visits", condition=Q(visits__session=session)),
    )
    columns = ("pk", "username", "mine__role", "look__at", "look__seen", "look__new_after")
    return [Person(*row) for row in people.order_by("username").values_list(*columns)]


def look(session: DiagnosisSession, user_id: int, last: int, people: Sequence[Person]) -> tuple[int, list[str]]:
    """Notes that the person looks now. Returns the event after which everything is new to them, and the other
    people who look. A first look has nothing new in it. last: number of the session's newest event."""
    now = timezone.now()
    others = [p.name for p in people if p.key != user_id and p.at and p.at > now - HERE]
    mine = next((person for person in people if person.key == user_id), None)
    if mine is None or mine.at is None or mine.seen is None or mine.new_after is None:
        return _first_look(session, user_id, now, last), others
    new_after = mine.seen if now - mine.at > AWAY else mine.new_after
    if mine.seen != last or now - mine.at >= HERE / 4:
        visit = Visit.objects.filter(session=session, user=user_id)
        with _as_far_as_it_goes():
            visit.update(at=now, seen=last, new_after=new_after)
    return new_after, others


def _first_look(session: DiagnosisSession, user_id: int, now: datetime, last: int) -> int:
    nothing_new = {"at": now, "seen": last, "new_after": last}
    with _as_far_as_it_goes():
        visit, _ = Visit.objects.get_or_create(session=session, user_id=user_id, defaults=nothing_new)
        return visit.new_after
    return last


@contextmanager
def _as_far_as_it_goes() -> Iterator[None]:
    """A look is noted where that is soon done: a database that takes nothing, because its disk is full or a
    purge gives its space back, still shows what it has, and at once."""
    _wait_for_others(SOON_S)
    try:
        yield
    except OperationalError as error:
        logger.warning("a look was not noted: %s", error)
    finally:
        _wait_for_others(connection.settings_dict["OPTIONS"].get("timeout", 0))


def _wait_for_others(seconds: float) -> None:
    """Seconds that SQLite waits for other writers. PostgreSQL's writers of other rows do not wait."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        connection.connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
