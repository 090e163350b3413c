"""What operations share: the session as who asks sees it, and what may be sent."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict

from webapp.accounts.models import Role
from webapp.triage.models import DiagnosisSession
from webapp.triage.views.shell import acting, session_for


class Sent(BaseModel):
    """A body: no field that nobody knows, no text where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True)


def session_of(
    request: HttpRequest, session_id: UUID, least: Role = Role.VIEWER
) -> DiagnosisSession:
    """As the pages' own: Http404 for who may not see it, PermissionDenied for a role below `least`."""
    return session_for(acting(request), session_id, least)
