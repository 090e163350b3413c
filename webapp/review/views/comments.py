"""Saying something about a session, a finding or a hypothesis."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.accounts.models import Role
from webapp.review.models import Comment
from webapp.triage.models import DiagnosisSession, Event
from webapp.triage.views.shell import acting, on_session_for

LONGEST = 10_000  # every page of the session shows it
STANCES = ("agree", "dispute", "")


@require_POST
@on_session_for(Role.REVIEWER)
def comment(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    text = request.POST.get("text", "").strip()
    stance = request.POST.get("stance", "")
    if not text:
        messages.error(request, "Write the reason too; it is what the others read.")
    elif len(text) > LONGEST:
        messages.error(
            request, f"A comment has at most {LONGEST:,} characters; paste outputs instead."
        )
    elif stance in STANCES:
        anchor = request.POST.get("anchor", "")[:120]
        with transaction.atomic():
            Comment.objects.create(
                session=session, author=acting(request), text=text, stance=stance, anchor=anchor
            )
            Event.record(session, "commented", acting(request), anchor=anchor, stance=stance)
    back = request.POST.get("back", "")
    inside = back.startswith(f"/sessions/{session.pk}/")
    return redirect(back if inside else session.get_absolute_url())
