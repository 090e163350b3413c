"""Retention: takes the raw bytes of old outputs away. Their hashes, what was read from them and the log
stay, and each session's log says what was taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import QuerySet, Sum
from django.db.models.functions import Length
from django.utils import timezone

from webapp.triage import bodies
from webapp.triage.models import DiagnosisSession, Event, Evidence, EvidenceBlock, OutputChunk
from webapp.triage.models.run import ENDED

# Where the bytes were; their pages are what has to be given back.
TABLES = (Evidence, EvidenceBlock, OutputChunk)


@dataclass(frozen=True, slots=True)
class Purged:
    """Of one session. size_bytes: of outputs and of runs' live output, which holds them once more."""

    session: DiagnosisSession
    evidence: int
    size_bytes: int


def purge(before: datetime, *, dry_run: bool = False) -> Iterator[Purged]:
    """Session by session, each in a transaction of its own: what came before that moment."""
    sessions = DiagnosisSession.objects.filter(created_at__lt=before).order_by("created_at", "pk")
    for session in sessions:
        old, chunks = _evidence(session, before), _chunks(session, before)
        size = _bytes(old, "size_bytes") + _bytes(old, Length("stderr"))
        size += _bytes(chunks, Length("body"))
        found = Purged(session, old.count(), size)
        if not found.evidence and not chunks.exists():
            continue
        if not dry_run:
            _take_away(session, old, chunks, size)
        yield found


def _evidence(session: DiagnosisSession, before: datetime) -> QuerySet[Evidence]:
    return session.evidence.filter(created_at__lt=before, purged_at=None)


def _chunks(session: DiagnosisSession, before: datetime) -> QuerySet[OutputChunk]:
    return OutputChunk.objects.filter(
        run__session=session, run__state__in=ENDED, run__created_at__lt=before
    )


def _bytes(rows: QuerySet[Evidence] | QuerySet[OutputChunk], what: str | Length) -> int:
    return int(rows.order_by().aggregate(total=Sum(what))["total"] or 0)


def _take_away(
    session: DiagnosisSession,
    old: QuerySet[Evidence],
    chunks: QuerySet[OutputChunk],
    size: int,
) -> None:
    with transaction.atomic():
        about = list(old.values_list("pk", "reader", "sha256"))
        keys = [pk for pk, *_ in about]
        blocks = EvidenceBlock.objects.filter(evidence__in=keys)
        places = {*old.values_list("place", flat=True), *blocks.values_list("place", flat=True)}
        Event.record(
            session,
            "evidence_purged",
            None,
            evidence=[f"{reader}@{sha256}" for _, reader, sha256 in about],
            bytes=size,
        )
        chunks.delete()
        blocks.delete()
        Evidence.objects.filter(pk__in=keys).update(
            body=b"", stderr=b"", place="", purged_at=timezone.now()
        )
    for place in places - {""}:
        if not any(
            model.objects.filter(place=place).exists() for model in (Evidence, EvidenceBlock)
        ):
            bodies.forget(place)


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
