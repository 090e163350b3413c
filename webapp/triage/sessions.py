"""Opening a session, its members, and saving what people type without losing a word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import F

from webapp.accounts.models import User
from webapp.triage.models import DiagnosisSession, Event, SessionMember


class EditedMeanwhileError(Exception):
    """Someone else saved this form after it was opened; nothing was overwritten."""

    def __init__(self, current: DiagnosisSession) -> None:
        super().__init__("This page was saved by someone else while you were typing.")
        self.current = current


def session_open(*, owner: User, title: str, symptom: str = "") -> DiagnosisSession:
    with transaction.atomic():
        session = DiagnosisSession.objects.create(owner=owner, title=title, symptom=symptom)
        SessionMember.objects.create(session=session, user=owner)
        Event.record(session, "session_opened", owner)
    return session


def session_save(
    session: DiagnosisSession, *, user: User, version: int, what: str, values: Mapping[str, Any]
) -> DiagnosisSession:
    """Saves fields of a session if it is still the version the form was opened on.

    Raises EditedMeanwhileError with the current row otherwise.
    """
    with transaction.atomic():
        won = DiagnosisSession.objects.filter(pk=session.pk, version=version).update(
            version=F("version") + 1, **values
        )
        if not won:
            raise EditedMeanwhileError(DiagnosisSession.objects.get(pk=session.pk))
        Event.record(session, "step_saved", user, step=what)
    session.refresh_from_db()
    return session


def member_add(session: DiagnosisSession, *, user: User, added_by: User) -> bool:
    """True when the person was not a member before."""
    with transaction.atomic():
        _, made = SessionMember.objects.get_or_create(session=session, user=user)
        if made:
            Event.record(session, "member_added", added_by, name=user.username)
    return made
