"""Who looks at a session now, and what is new to whom."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from webapp.triage.models import DiagnosisSession, Visit

HERE = timedelta(seconds=60)  # the page reports itself every 15 s while it is open
AWAY = timedelta(minutes=20)  # after that, coming back is another look


def look(session: DiagnosisSession, user_id: int) -> Visit:
    """Notes that the person looks now. A person's first look has nothing new in it."""
    now, last = timezone.now(), _last_number(session)
    visit, made = Visit.objects.get_or_create(
        session=session, user_id=user_id, defaults={"at": now, "seen": last, "new_after": last}
    )
    if made:
        return visit
    if now - visit.at > AWAY:
        visit.new_after = visit.seen
    elif visit.seen == last and now - visit.at < HERE / 4:
        return visit
    visit.at, visit.seen = now, last
    visit.save(update_fields=["at", "seen", "new_after"])
    return visit


def _last_number(session: DiagnosisSession) -> int:
    last = session.events.values_list("number", flat=True).first()
    return last or 0


def others_here(session: DiagnosisSession, user_id: int) -> list[str]:
    """Names of the other people who look at it now."""
    recent = session.visits.filter(at__gt=timezone.now() - HERE).exclude(user_id=user_id)
    return list(recent.order_by("user__username").values_list("user__username", flat=True))
