"""Who looks at a session now, and what is new to whom."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from webapp.triage.models import DiagnosisSession, Visit

HERE = timedelta(seconds=60)  # the page reports itself every 15 s while it is open
AWAY = timedelta(minutes=20)  # after that, coming back is another look


def look(session: DiagnosisSession, user_id: int, last: int) -> tuple[Visit, list[str]]:
    """Notes that the person looks now, and names the others who do. A person's first look has nothing new
    in it. last: number of the session's newest event."""
    now, visits = timezone.now(), list(session.visits.select_related("user"))
    others = sorted(v.user.username for v in visits if v.user_id != user_id and v.at > now - HERE)
    mine = next((visit for visit in visits if visit.user_id == user_id), None)
    return _noted(mine, now, last) if mine else _first(session, user_id, now, last), others


def _first(session: DiagnosisSession, user_id: int, now: datetime, last: int) -> Visit:
    nothing_new = {"at": now, "seen": last, "new_after": last}
    visit, _ = Visit.objects.get_or_create(session=session, user_id=user_id, defaults=nothing_new)
    return visit


def _noted(visit: Visit, now: datetime, last: int) -> Visit:
    if now - visit.at > AWAY:
        visit.new_after = visit.seen
    elif visit.seen == last and now - visit.at < HERE / 4:
        return visit
    visit.at, visit.seen = now, last
    visit.save(update_fields=["at", "seen", "new_after"])
    return visit
