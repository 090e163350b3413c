"""Webhooks: programs that are told what happens, in one session or in all."""

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from webapp import sealing
from webapp.accounts.models import Role
from webapp.api.auth import READ, WRITE
from webapp.api.declared import filled
from webapp.api.idempotency import remembered
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError
from webapp.api.request_context import Sent, session_of, user_of
from webapp.notices.addresses import AddressError
from webapp.notices.kinds import KINDS
from webapp.notices.models import Delivery, Webhook
from webapp.notices.webhooks import place_host, webhook_add, webhook_remove, webhooks_of
from webapp.records.models import DiagnosisSession

router = Router(tags=["webhooks"])
W = "/sessions/{uuid:session_id}/webhooks"


class Hook(BaseModel):
    """url: whole for operators, because it often holds a secret of the receiver's; for others its host.
    stands: false once who added it may not any more; nothing is sent there then."""

    id: UUID
    url: str
    kinds: list[str]
    made_by: str
    stands: bool
    made_at: datetime


class NewHook(Hook):
    """secret: what is sent is signed with it. Shown once; null when an answer is repeated."""

    secret: str | None


class Telling(Sent):
    """kinds: of news; the refusal of another one names all there are."""

    url: str = Field(min_length=1, max_length=500)
    kinds: list[str] = Field(min_length=1, max_length=20)


class Message(BaseModel):
    """state: waiting, sending, delivered or failed. tries: begun so far; due_at: the next one, while it
    waits; status: the last answer's; problem: why it is not delivered, for people."""

    id: UUID
    webhook: UUID | None
    session: UUID
    kind: str
    state: str
    tries: int
    status: int | None
    problem: str
    made_at: datetime
    due_at: datetime
    ended_at: datetime | None


def _hook(hook: Webhook, *, whole: bool) -> Hook:
    return filled(Hook, hook, url=hook.url if whole else place_host(hook), made_by=hook.made_by.username)


def _added(request: HttpRequest, session: DiagnosisSession | None, sent: Telling) -> NewHook:
    if unknown := sorted(set(sent.kinds) - KINDS.keys()):
        raise RefusedError(422, f"There is no {', '.join(unknown)}; there are {', '.join(KINDS)}.")
    try:
        made, secret = webhook_add(session, url=sent.url, kinds=sent.kinds, by=user_of(request))
    except (AddressError, sealing.SealError) as error:
        raise RefusedError(422, str(error)) from error
    return NewHook(secret=secret, **_hook(made, whole=True).model_dump())


def _messages(session: DiagnosisSession | None, query: Asked) -> Page[Message]:
    rows = Delivery.objects.filter(webhook__session=session, user=None).exclude(webhook=None)
    records, following = page(rows.select_related("webhook", "event"), query, by="made_at")
    return Page[Message](items=[_message(one) for one in records], next=following)


def _message(delivery: Delivery) -> Message:
    keys = {"webhook": delivery.webhook_id, "session": delivery.event.session_id}
    return filled(Message, delivery, state=str(delivery.state), **keys)


@router.get(W, auth=READ, response=list[Hook])
def list_webhooks(request: HttpRequest, session_id: UUID) -> list[Hook]:
    """Webhooks that are told of this session, at most 20."""
    session = session_of(request, session_id)
    whole = Role(session.my_role).covers(Role.OPERATOR)
    return [_hook(hook, whole=whole) for hook in webhooks_of(session)]


@router.get(W + "/messages", auth=READ, response=Page[Message])
def list_messages(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Message]:
    """What was sent to this session's own webhooks, the newest first."""
    return _messages(session_of(request, session_id), query)


@router.post(W, auth=WRITE, response={201: NewHook})
@remembered(without="secret")
def add_webhook(request: HttpRequest, session_id: UUID, sent: Telling) -> Status[NewHook]:
    """Adds one; its address is looked up first."""
    session = session_of(request, session_id, Role.OPERATOR)
    return Status(201, _added(request, session, sent))


@router.delete(W + "/{uuid:webhook_id}", auth=WRITE, response={204: None})
def remove_webhook(request: HttpRequest, session_id: UUID, webhook_id: UUID) -> Status[None]:
    """Nothing is sent there any more, and its secret is forgotten."""
    session = session_of(request, session_id, Role.OPERATOR)
    hook = get_object_or_404(session.webhooks, pk=webhook_id)
    webhook_remove(hook, by=user_of(request))
    return Status(204, None)
