"""What operations share: the session as who asks sees it, and what may be sent."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict

from webapp.accounts.models import Role, User
from webapp.triage.models import DiagnosisSession
from webapp.triage.views.shell import acting, session_for


class Sent(BaseModel):
    """A body: no field that nobody knows, no text where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True)


def administrator(request: HttpRequest) -> User:
    """Who asks. Raises PermissionDenied for everybody else."""
    user = acting(request)
    if not user.is_staff:
        raise PermissionDenied("Only an administrator sees all sessions.")
    return user


def session_of(request: HttpRequest, session_id: UUID, least: Role = Role.VIEWER) -> DiagnosisSession:
    """As the pages' own: Http404 for who may not see it, PermissionDenied for a role below `least`."""
    return session_for(acting(request), session_id, least)
