"""Retention: takes the raw bytes of old outputs away. Their hashes, what was read from them and the log
stay, and each session's log says what was taken. Or a whole session, of which nothing stays.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import QuerySet, Sum
from django.db.models.functions import Length
from django.utils import timezone

from webapp.records import blob_store
from webapp.records.models import DiagnosisSession, Event, Evidence, EvidenceBlock, OutputChunk
from webapp.records.models.run import ENDED

# Where the bytes were; their pages are what has to be given back.
TABLES = (Evidence, EvidenceBlock, OutputChunk)

logger = logging.getLogger(__name__)


class UnderWayError(Exception):
    """A run of the session has not ended; the text names it."""


@dataclass(frozen=True, slots=True)
class Purged:
    """The purge of one session. size_bytes: of its outputs and of its runs' live output, which holds them once more."""

    session: DiagnosisSession
    evidence: int
    size_bytes: int


def purge(before: datetime, *, only: DiagnosisSession | None = None, dry_run: bool = False) -> Iterator[Purged]:
    """Purges evidence created before that moment, session by session, each in its own transaction. only: this
    session alone."""
    sessions = DiagnosisSession.objects.filter(created_at__lt=before)
    for session in (sessions.filter(pk=only.pk) if only else sessions).order_by("created_at", "pk"):
        old, chunks = _evidence(session, before), _chunks(session, before)
        size = _bytes(old, "size_bytes") + _bytes(old, Length("stderr"))
        size += _bytes(chunks, Length("body"))
        purged = Purged(session, old.count(), size)
        if not purged.evidence and not chunks.exists():
            continue
        if not dry_run:
            _take_away(session, old, chunks, size)
        yield purged


def remove(session: DiagnosisSession) -> None:
    """Takes a session away with all that was given, read, decided, said and logged in it; the log of this
    process says so. Raises UnderWayError, and LostError while the storage of evidence is away: the
    outputs' bytes here are gone then, and the rest goes when it is asked for again.
    """
    if run := session.runs.exclude(state__in=ENDED).first():
        raise UnderWayError(f"Run {run.number} has not ended; cancel it first.")
    for _ in purge(timezone.now(), only=session):
        pass
    forget_outside()
    key = session.pk
    session.delete()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:  # the index keeps words that went until it is merged
            cursor.execute("INSERT INTO records_entry_words(records_entry_words) VALUES ('optimize')")
    logger.warning("session %s was removed", key)


def _evidence(session: DiagnosisSession, before: datetime) -> QuerySet[Evidence]:
    return session.evidence.filter(created_at__lt=before, purged_at=None)


def _chunks(session: DiagnosisSession, before: datetime) -> QuerySet[OutputChunk]:
    return OutputChunk.objects.filter(run__session=session, run__state__in=ENDED, run__created_at__lt=before)


def _bytes(rows: QuerySet[Evidence] | QuerySet[OutputChunk], what: str | Length) -> int:
    return int(rows.order_by().aggregate(total=Sum(what))["total"] or 0)


def _take_away(session: DiagnosisSession, old: QuerySet[Evidence], chunks: QuerySet[OutputChunk], size: int) -> None:
    with transaction.atomic():
        about = list(old.values_list("pk", "reader", "sha256"))
        keys = [pk for pk, *_ in about]
        Event.record(
            session, "evidence_purged", None, evidence=[f"{reader}@{sha256}" for _, reader, sha256 in about], bytes=size
        )
        chunks.delete()
        EvidenceBlock.objects.filter(evidence__in=keys, place="").delete()
        Evidence.objects.filter(pk__in=keys).update(body=b"", stderr=b"", purged_at=timezone.now())


def forget_outside() -> None:
    """Takes away what lies outside the database and that nothing names any more. A row keeps the place until
    it is gone from there, so that a storage that was away is asked again by the next purge. Raises
    LostError."""
    evidence = Evidence.objects.exclude(purged_at=None).exclude(place="")
    blocks = EvidenceBlock.objects.exclude(evidence__purged_at=None).exclude(place="")
    for place in {*evidence.values_list("place", flat=True), *blocks.values_list("place", flat=True)}:
        if not _is_needed(place):
            blob_store.forget(place)
        Evidence.objects.filter(place=place).exclude(purged_at=None).update(place="")
        blocks.filter(place=place).delete()


def _is_needed(place: str) -> bool:
    evidence = Evidence.objects.filter(place=place, purged_at=None)
    return evidence.exists() or EvidenceBlock.objects.filter(place=place, evidence__purged_at=None).exists()


def give_back(*, whole: bool) -> None:
    """Gives the pages that are free now back: SQLite's to the disk, PostgreSQL's to new rows, or to the
    disk too when `whole`, which locks these tables for as long as they take to be written anew."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return
    how = "VACUUM (FULL, ANALYZE)" if whole else "VACUUM (ANALYZE)"
    with connection.cursor() as cursor:
        for model in TABLES:
            cursor.execute(f"{how} {connection.ops.quote_name(model._meta.db_table)}")
