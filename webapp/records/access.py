"""Who may do what: in a session, with sessions, with keys."""

from collections.abc import Callable
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.shortcuts import get_object_or_404

from webapp.accounts.models import Role, User
from webapp.records.models import DiagnosisSession
from webapp.records.models.session import SessionQuerySet


def session_for(
    user: User, session_id: UUID, least: Role, *, prepare: Callable[[SessionQuerySet], SessionQuerySet] | None = None
) -> DiagnosisSession:
    """The session as this person sees it. Raises Http404 for people who may not see it, PermissionDenied for a role
    below `least`. prepare: adds columns that the caller reads."""
    visible = DiagnosisSession.objects.visible_to(user).select_related("owner")
    session = get_object_or_404(prepare(visible) if prepare else visible, pk=session_id)
    if not Role(session.my_role).covers(least):
        raise PermissionDenied(_refusal_reason(session, least))
    return session


def _refusal_reason(session: DiagnosisSession, least: Role) -> str:
    return (
        f"You are a {session.my_role} of this session; this needs a {least}. "
        f"{session.owner.username} or an administrator can change your role."
    )


def refuse_unless_may_open(user: User) -> None:
    """Raises PermissionDenied for those who may open no session."""
    if not user.may_open_sessions:
        raise PermissionDenied(
            f"Your account is a {user.role}'s: you see the sessions you were added to. An administrator "
            "can make you an operator."
        )


def refuse_unless_may_store_keys(user: User) -> None:
    """Raises PermissionDenied."""
    if not user.may_open_sessions:
        raise PermissionDenied("Keys are for operators: only they connect to machines.")
