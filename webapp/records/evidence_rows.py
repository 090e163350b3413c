"""The evidence of a session without its bytes, read once a page."""

from collections.abc import Sequence

from django.db.models import Case, F, Q, QuerySet, Value, When, prefetch_related_objects
from django.http import Http404

from webapp.records.models import DiagnosisSession, Evidence

_KEPT = "evidence_rows"
# Of a longer output nothing is quoted where many are listed.
QUOTED_BYTES = 2_000_000


def evidence_of(session: DiagnosisSession) -> Sequence[Evidence]:
    """In order, each with its run; kept on this object of the session, which lives as long as a page."""
    rows: Sequence[Evidence] | None = getattr(session, _KEPT, None)
    if rows is None:
        rows = tuple(_evidence_rows(session))
        setattr(session, _KEPT, rows)
    return rows


def evidence_named(session: DiagnosisSession, name: str) -> Evidence:
    """By its name, "<reader>@<12 hex>". Raises Http404 when this session has none of that name."""
    reader, _, digest = name.rpartition("@")
    rows = session.evidence.select_related("created_by").prefetch_related("assignments")
    evidence = rows.filter(reader=reader, sha256__startswith=digest).last()
    if evidence is None or len(digest) < 12:
        raise Http404("No such evidence in this session.")
    return evidence


def to_say(session: DiagnosisSession) -> list[Evidence]:
    """Those of whose lines a person can say what they are: with what was said, and with the text of those
    that have lines nobody could place. Asked before `evidence_of`, which then asks nothing."""
    quoted = Case(When(Q(unplaced=[]) | Q(size_bytes__gt=QUOTED_BYTES), then=Value(b"")), default=F("body"))
    setattr(session, _KEPT, tuple(_evidence_rows(session).annotate(quoted=quoted)))
    rows = (e for e in evidence_of(session) if not e.set_aside_at)
    to_assign = [e for e in rows if e.unplaced or e.doubts]
    prefetch_related_objects(to_assign, "assignments")
    return to_assign


def _evidence_rows(session: DiagnosisSession) -> QuerySet[Evidence]:
    return session.evidence.defer("body", "stderr").select_related("run")
