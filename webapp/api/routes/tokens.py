"""One's own tokens: which there are, and ending one. None is made here, and none shows its secret."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import BaseModel

from webapp.accounts.models import ApiToken
from webapp.api.auth import ANY, READ
from webapp.api.paging import Asked, Page, page
from webapp.triage.views.shell import acting

router = Router(tags=["your tokens"])


class OwnToken(BaseModel):
    """handle: its middle part. scopes: as it was made; in_effect: those that count now. used_at: to the
    minute, null for never. asking: it is the one that asks."""

    handle: str
    name: str
    scopes: list[str]
    in_effect: list[str]
    made_at: datetime
    expires_at: datetime
    used_at: datetime | None
    asking: bool


@router.get("/tokens", auth=READ, response=Page[OwnToken])
def list_tokens(request: HttpRequest, asked: Query[Asked]) -> Page[OwnToken]:
    """Your good tokens, the newest first."""
    good = acting(request).api_tokens.filter(revoked_at=None, expires_at__gt=timezone.now())
    found, following = page(good.select_related("owner"), asked, by="made_at")
    return Page[OwnToken](items=[_shown(one, request) for one in found], next=following)


def _shown(token: ApiToken, request: HttpRequest) -> OwnToken:
    names = set(OwnToken.model_fields) - {"asking"}
    plain = {name: getattr(token, name) for name in names}
    return OwnToken(asking=token == request.auth, **plain)  # type: ignore[attr-defined]


@router.delete("/tokens/{str:handle}", auth=ANY, response={204: None})
def revoke_token(request: HttpRequest, handle: str) -> Status[None]:
    """Ends a token of yours, this one too; it opens nothing from then on."""
    get_object_or_404(acting(request).api_tokens, handle=handle).revoke()
    return Status(204, None)
