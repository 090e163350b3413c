"""Sessions narrowed by words and by what their digests say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from django.db.models import OuterRef, QuerySet, Subquery

from webapp.accounts.models import User
from webapp.records.models import Digest, Entry
from webapp.records.models.session import SessionQuerySet
from webapp.records.search import LOOKED, newest

LONGEST_FIELD = 100  # characters


@dataclass(frozen=True, slots=True)
class Criteria:
    """q: words; gpu, board, driver: a part of it, the beginning of a driver's version; verdict: the id
    of a supported hypothesis; gate: of the first that failed."""

    q: str = ""
    gpu: str = ""
    board: str = ""
    driver: str = ""
    verdict: str = ""
    gate: str = ""

    @classmethod
    def of(cls, typed: Mapping[str, str]) -> Criteria:
        return cls(**{name: typed.get(name, "").strip()[:LONGEST_FIELD] for name in cls.__slots__})

    @property
    def filled(self) -> dict[str, str]:
        """Those that narrow something."""
        return {name: value for name, value in asdict(self).items() if value}


def sessions_matching(sessions: SessionQuerySet, user: User, criteria: Criteria) -> tuple[SessionQuerySet, bool]:
    """Those that meet all criteria, and whether older ones may be missing."""
    digests = _digests_matching(criteria)
    if digests is not None:
        sessions = _with_digest(sessions, digests)
    if not criteria.q:
        return sessions, False
    entries = Entry.objects.visible_to(user)
    if digests is not None:
        entries = entries.filter(session__in=digests.values("pk"))
    keys = list(newest(entries, criteria.q).values_list("session_id", flat=True)[: LOOKED + 1])
    return sessions.filter(pk__in=set(keys[:LOOKED])), len(keys) > LOOKED


def _digests_matching(criteria: Criteria) -> QuerySet[Digest] | None:
    """The digests are looked through by themselves: they are small, and lie together."""
    columns = {
        "gpu__icontains": criteria.gpu,
        "board__icontains": criteria.board,
        "driver__startswith": criteria.driver,
        "verdicts__icontains": f'"{criteria.verdict}"' if criteria.verdict else "",  # in a list of ids
        "gate": criteria.gate,
    }
    conditions = {column: value for column, value in columns.items() if value}
    return Digest.objects.filter(**conditions) if conditions else None


def _with_digest(sessions: SessionQuerySet, digests: QuerySet[Digest]) -> SessionQuerySet:
    """Few are sorted; of many the newest are found sooner by going through all sessions in order."""
    few = list(digests.values_list("pk", flat=True)[: LOOKED + 1])
    if len(few) <= LOOKED:
        return sessions.filter(pk__in=few)
    # Not EXISTS: that PostgreSQL may work out for all sessions before it sorts them.
    here = Subquery(digests.filter(pk=OuterRef("pk")).values("pk")[:1])
    return sessions.annotate(is_alike=here).filter(is_alike__isnull=False)
