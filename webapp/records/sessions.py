"""Opening a session, its members, and saving what people type without losing a word."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import F

from webapp.accounts.models import Role, User
from webapp.records.models import DiagnosisSession, Event, SessionMember


class EditedMeanwhileError(Exception):
    """Another person saved this form after it was opened; nothing was overwritten."""

    def __init__(self, current: DiagnosisSession) -> None:
        super().__init__("This page was saved by someone else while you were typing.")
        self.current = current


class LastOperatorError(Exception):
    """A session keeps one operator."""

    def __init__(self) -> None:
        super().__init__("A session keeps at least one operator; make someone else one first.")


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
        won = DiagnosisSession.objects.filter(pk=session.pk, version=version).update(version=F("version") + 1, **values)
        if not won:
            raise EditedMeanwhileError(DiagnosisSession.objects.get(pk=session.pk))
        Event.record(session, "step_saved", user, step=what)
    session.refresh_from_db()
    return session


def member_add(session: DiagnosisSession, *, user: User, added_by: User, role: str = Role.OPERATOR) -> bool:
    """Makes the person a member in that role, or changes their role. False when nothing changed.

    Raises LastOperatorError when nobody could change the session any more.
    """
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        before = SessionMember.objects.filter(session=session, user=user).first()
        if before and before.role == role:
            return False
        if before and role != Role.OPERATOR:
            _keep_an_operator(session, without=user)
        SessionMember.objects.update_or_create(session=session, user=user, defaults={"role": role})
        kind = "member_role_changed" if before else "member_added"
        Event.record(session, kind, added_by, name=user.username, role=role)
    return True


def member_remove(session: DiagnosisSession, *, user: User, removed_by: User) -> bool:
    """False when the person was no member. Raises LastOperatorError as `member_add` does."""
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        _keep_an_operator(session, without=user)
        gone, _ = SessionMember.objects.filter(session=session, user=user).delete()
        if gone:
            Event.record(session, "member_removed", removed_by, name=user.username)
    return bool(gone)


def quorum_set(session: DiagnosisSession, *, quorum: int, user: User) -> None:
    """How many others approve what the host admin carries out; 0: nobody, and the log says who decided so.

    For decisions that are proposed or approved from now on. quorum: 0 to 9.
    """
    with transaction.atomic():
        DiagnosisSession.objects.filter(pk=session.pk).update(quorum=quorum)
        Event.record(session, "quorum_set", user, quorum=quorum)


def _keep_an_operator(session: DiagnosisSession, *, without: User) -> None:
    others = SessionMember.objects.filter(session=session, role=Role.OPERATOR).exclude(user=without)
    if not others.exists():
        raise LastOperatorError
