"""What operations share: the session as who asks sees it, and what may be sent."""

from typing import cast
from uuid import UUID

from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict

from webapp.accounts.models import Role, User
from webapp.records.access import session_for
from webapp.records.models import DiagnosisSession


class Sent(BaseModel):
    """A body: no field that nobody knows, no text where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True)


def user_of(request: HttpRequest) -> User:
    """The owner of the token that was sent."""
    return cast(User, request.user)


def session_of(request: HttpRequest, session_id: UUID, least: Role = Role.VIEWER) -> DiagnosisSession:
    """As the pages' own: Http404 for who may not see it, PermissionDenied for a role below `least`."""
    return session_for(user_of(request), session_id, least)
