"""The list of sessions, newest first, searched and narrowed, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery, Value

from webapp.accounts.models import User
from webapp.triage.models import DiagnosisSession, Digest, Entry, SessionMember
from webapp.triage.models.session import SessionQuerySet
from webapp.triage.search import LOOKED, newest

PER_PAGE = 50
# Of so many sessions the newest are found sooner by going through all in order than by sorting one's own.
MANY = 2000
_LONGEST = 100  # of what is typed into a field


@dataclass(frozen=True, slots=True)
class Asked:
    """q: words; gpu, board, driver: a part of it, the beginning of a driver's version; verdict: the id
    of a supported hypothesis; gate: of the first that failed."""

    q: str = ""
    gpu: str = ""
    board: str = ""
    driver: str = ""
    verdict: str = ""
    gate: str = ""

    @classmethod
    def of(cls, typed: Mapping[str, str]) -> Asked:
        return cls(**{name: typed.get(name, "").strip()[:_LONGEST] for name in cls.__slots__})

    @property
    def narrowed(self) -> bool:
        return any(asdict(self).values())

    @property
    def query(self) -> str:
        return urlencode({name: value for name, value in asdict(self).items() if value})


@dataclass(frozen=True, slots=True)
class Page:
    """after: what leads to the next page, "" on the last. cut: more texts have these words than are looked
    at, so that older ones may be missing."""

    sessions: list[DiagnosisSession]
    after: str
    cut: bool


def page(user: User, asked: Asked, before: str = "") -> Page:
    """before: `after` of the page before; what is none leads to the first."""
    found, cut = narrowed(_visible(user), user, asked)
    found = _following(found, before).select_related("owner", "digest")
    rows = list(found.order_by("-updated_at", "-id")[: PER_PAGE + 1])
    more = len(rows) > PER_PAGE
    last = rows[PER_PAGE - 1] if more else None
    return Page(rows[:PER_PAGE], f"{last.updated_at.isoformat()}_{last.pk}" if last else "", cut)


def _visible(user: User) -> SessionQuerySet:
    """As `visible_to`, in a form that suits how many they are."""
    mine = SessionMember.objects.filter(user=user)
    if user.is_staff or mine[:MANY].count() < MANY:
        return DiagnosisSession.objects.visible_to(user)
    role = mine.filter(session=OuterRef("pk")).values("role")[:1]
    found = DiagnosisSession.objects.annotate(asker_id=Value(user.pk), role_of_asker=Subquery(role))
    return found.filter(role_of_asker__isnull=False)


def narrowed(found: SessionQuerySet, user: User, asked: Asked) -> tuple[SessionQuerySet, bool]:
    """Those of them that were asked for, and whether older ones may be missing."""
    alike = _alike(asked)
    if alike is not None:
        found = _of(found, alike)
    if not asked.q:
        return found, False
    entries = Entry.objects.visible_to(user)
    if alike is not None:
        entries = entries.filter(session__in=alike.values("pk"))
    keys = list(newest(entries, asked.q).values_list("session_id", flat=True)[: LOOKED + 1])
    return found.filter(pk__in=set(keys[:LOOKED])), len(keys) > LOOKED


def _alike(asked: Asked) -> QuerySet[Digest] | None:
    """The digests are looked through by themselves: they are small, and lie together."""
    columns = {
        "gpu__icontains": asked.gpu,
        "board__icontains": asked.board,
        "driver__startswith": asked.driver,
        "verdicts__icontains": f'"{asked.verdict}"' if asked.verdict else "",  # in a list of ids
        "gate": asked.gate,
    }
    asked_for = {column: value for column, value in columns.items() if value}
    return Digest.objects.filter(**asked_for) if asked_for else None


def _of(found: SessionQuerySet, alike: QuerySet[Digest]) -> SessionQuerySet:
    """Few are sorted; of many the newest are found sooner by going through all sessions in order."""
    few = list(alike.values_list("pk", flat=True)[: LOOKED + 1])
    if len(few) <= LOOKED:
        return found.filter(pk__in=few)
    # Not EXISTS: that PostgreSQL may work out for all sessions before it sorts them.
    here = Subquery(alike.filter(pk=OuterRef("pk")).values("pk")[:1])
    return found.annotate(is_alike=here).filter(is_alike__isnull=False)


def _following(found: SessionQuerySet, before: str) -> SessionQuerySet:
    at, _, key = before.partition("_")
    try:
        moment, last = datetime.fromisoformat(at).astimezone(UTC), UUID(key)
    except (ValueError, OverflowError):
        return found
    return found.filter(Q(updated_at__lt=moment) | Q(updated_at=moment, pk__lt=last))
