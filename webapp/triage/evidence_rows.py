"""The evidence of a session without its bytes, read once a page."""

from __future__ import annotations

from collections.abc import Sequence

from webapp.triage.models import DiagnosisSession, Evidence

_KEPT = "evidence_rows"


def evidence_of(session: DiagnosisSession) -> Sequence[Evidence]:
    """In order, each with its run; kept on this object of the session, which lives as long as a page."""
    found: Sequence[Evidence] | None = getattr(session, _KEPT, None)
    if found is None:
        found = tuple(session.evidence.defer("body", "stderr").select_related("run"))
        setattr(session, _KEPT, found)
    return found
