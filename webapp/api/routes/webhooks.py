"""Webhooks of a session: programs that are told what happens in it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Status
from pydantic import BaseModel, Field

from webapp.accounts.models import Role
from webapp.api.asking import Sent, session_of
from webapp.api.auth import READ, WRITE
from webapp.api.problems import RefusedError
from webapp.api.remembering import remembered
from webapp.notices.addresses import AddressError
from webapp.notices.kinds import KINDS
from webapp.notices.models import Webhook
from webapp.notices.webhooks import place_host, webhook_add, webhook_remove
from webapp.triage import sealing
from webapp.triage.views.shell import acting

router = Router(tags=["webhooks"])
W = "/sessions/{uuid:session_id}/webhooks"


class Hook(BaseModel):
    """url: whole for operators, because it often holds a secret of the receiver's; for others its host."""

    id: UUID
    url: str
    kinds: list[str]
    made_by: str
    made_at: datetime


class NewHook(Hook):
    """secret: what is sent is signed with it. Shown once; null when an answer is repeated."""

    secret: str | None


class Telling(Sent):
    """kinds: of news; the refusal of another one names all there are."""

    url: str = Field(min_length=1, max_length=500)
    kinds: list[str] = Field(min_length=1, max_length=20)


def _shown(hook: Webhook, *, whole: bool) -> Hook:
    return Hook(
        id=hook.pk,
        url=hook.url if whole else place_host(hook),
        kinds=hook.kinds,
        made_by=hook.made_by.username,
        made_at=hook.made_at,
    )


@router.get(W, auth=READ, response=list[Hook])
def list_webhooks(request: HttpRequest, session_id: UUID) -> list[Hook]:
    """Those that are told of this session, at most 20."""
    session = session_of(request, session_id)
    whole = Role(session.my_role).covers(Role.OPERATOR)
    found = session.webhooks.filter(removed_at=None).select_related("made_by")
    return [_shown(hook, whole=whole) for hook in found]


@router.post(W, auth=WRITE, response={201: NewHook})
@remembered(without="secret")
def add_webhook(request: HttpRequest, session_id: UUID, sent: Telling) -> Status[NewHook]:
    """Adds one; its address is looked up first."""
    session = session_of(request, session_id, Role.OPERATOR)
    if unknown := sorted(set(sent.kinds) - KINDS.keys()):
        raise RefusedError(422, f"There is no {', '.join(unknown)}; there are {', '.join(KINDS)}.")
    try:
        made, secret = webhook_add(session, url=sent.url, kinds=sent.kinds, by=acting(request))
    except (AddressError, sealing.SealError) as error:
        raise RefusedError(422, str(error)) from error
    return Status(201, NewHook(secret=secret, **_shown(made, whole=True).model_dump()))


@router.delete(W + "/{uuid:webhook_id}", auth=WRITE, response={204: None})
def remove_webhook(request: HttpRequest, session_id: UUID, webhook_id: UUID) -> Status[None]:
    """Nothing is sent there any more, and its secret is forgotten."""
    session = session_of(request, session_id, Role.OPERATOR)
    hook = get_object_or_404(session.webhooks, pk=webhook_id)
    webhook_remove(hook, by=acting(request))
    return Status(204, None)
