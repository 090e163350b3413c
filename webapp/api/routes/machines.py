"""The machines of a session, and the host keys people accept for them."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from agents.agent import AgentError
from webapp.accounts.models import Role, User
from webapp.api.auth import READ, RUN
from webapp.api.declared import filled
from webapp.api.idempotency import remembered
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError as Refused
from webapp.api.request_context import Sent, session_of, user_of
from webapp.records.models import DiagnosisSession, Event, Target
from webapp.runs.credentials import RefusedError, refuse_unless_keys_are_theirs
from webapp.runs.host_key_check import Contact, first_contact, host_key_pin
from webapp.runs.targets import TargetError, refuse_unless_may_add, ssh_fields, target_add, with_usable_key

router = Router(tags=["machines"])
T = "/sessions/{uuid:session_id}/targets"


class Machine(BaseModel):
    """key: the fingerprint that was accepted for it, "" while none is."""

    id: int
    role: str
    agent: str
    host: str
    port: int
    user: str
    jump: str
    key: str
    created_at: datetime


class NewMachine(Sent):
    """agent local: this machine itself, for administrators. stored_key: the id of one of /keys;
    identity_file: a path where Peerpath runs."""

    role: Literal["guest", "host"]
    agent: Literal["ssh", "local"] = "ssh"
    host: str = Field("", max_length=255)
    port: int = Field(22, ge=1, le=65535)
    user: str = Field("root", max_length=64)
    jump: str = Field("", max_length=300)
    stored_key: str = Field("", max_length=36)
    identity_file: str = Field("", max_length=400)


class Key(BaseModel):
    """The first hop whose key nobody accepted or that changed; else the machine's own. through: the jump
    host it was asked through."""

    host: str
    port: int
    fingerprint: str
    line: str
    accepted: bool
    changed: bool
    through: str


class Yes(Sent):
    """fingerprint: as it was shown; the key is pinned only while it is this one."""

    fingerprint: str = Field(min_length=1, max_length=100)


class Hop(BaseModel):
    host: str = Field(min_length=1, max_length=255)
    port: int = Field(ge=1, le=65535)


@router.get(T, auth=READ, response=Page[Machine])
def list_targets(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Machine]:
    """The machines of this session, the newest first."""
    session = session_of(request, session_id)
    keys = {(pin.host, pin.port): pin.fingerprint for pin in session.host_keys.all()}
    records, following = page(session.targets.all(), query, by="id")
    return Page[Machine](items=[_machine(one, keys) for one in records], next=following)


def _machine(target: Target, keys: dict[tuple[str, int], str]) -> Machine:
    return filled(Machine, target, key=keys.get((target.host, target.port), ""))


@router.post(T, auth=RUN, response={201: Machine})
@remembered()
def add_target(request: HttpRequest, session_id: UUID, sent: NewMachine) -> Status[Machine]:
    """Adds a machine. Its host key has to be accepted before anything runs there."""
    session, user = session_of(request, session_id, Role.OPERATOR), user_of(request)
    refuse_unless_may_add(user, sent.agent)
    fields: dict[str, Any] = {"agent": sent.agent}
    if sent.agent == "ssh":
        try:
            fields |= ssh_fields(with_usable_key(sent.model_dump(exclude={"role", "agent"}), user))
        except TargetError as error:
            raise Refused(422, str(error)) from error
    return Status(201, _machine(target_add(session, sent.role, user, fields), {}))


@router.get(T + "/{int:target_id}/key", auth=RUN, response=Key)
def look_at_key(request: HttpRequest, session_id: UUID, target_id: int) -> Key:
    """Asks the machine for its host key."""
    session = session_of(request, session_id)
    return _key(_contact(session, target_id, user_of(request)))


@router.post(T + "/{int:target_id}/key", auth=RUN, response=Key)
def accept_key(request: HttpRequest, session_id: UUID, target_id: int, sent: Yes) -> Key:
    """Pins the key that you saw and compared."""
    session = session_of(request, session_id, Role.OPERATOR)
    contact = _contact(session, target_id, user_of(request))
    if contact.changed:
        raise Refused(409, f"The key of {contact.host} changed. It stays blocked until it is forgotten.")
    if contact.host_key.fingerprint != sent.fingerprint:
        raise Refused(409, f"{contact.host} shows {contact.host_key.fingerprint}, not what you named.")
    host_key_pin(session, contact, user_of(request))
    return _key(contact).model_copy(update={"accepted": True})


@router.delete(T + "/{int:target_id}/key", auth=RUN, response={204: None})
def forget_key(request: HttpRequest, session_id: UUID, target_id: int, hop: Query[Hop]) -> Status[None]:
    """Forgets the accepted key of this machine, or of one on the way to it."""
    session, user = session_of(request, session_id, Role.OPERATOR), user_of(request)
    target = get_object_or_404(session.targets, pk=target_id, agent="ssh")
    try:
        refuse_unless_keys_are_theirs(target, user)
    except RefusedError as error:
        raise PermissionDenied("Only who may connect to this machine may forget its key.") from error
    session.host_keys.filter(host=hop.host, port=hop.port).delete()
    Event.record(session, "host_key_forgotten", user, host=hop.host)
    return Status(204, None)


def _contact(session: DiagnosisSession, target_id: int, user: User) -> Contact:
    target = get_object_or_404(session.targets, pk=target_id, agent="ssh")
    try:
        contact = first_contact(target, user)
    except RefusedError as error:
        raise PermissionDenied(str(error)) from error
    except AgentError as error:
        raise Refused(409, str(error)) from error
    if contact.changed:
        Event.record(session, "host_key_changed", user, host=contact.host)
    return contact


def _key(contact: Contact) -> Key:
    return Key(
        host=contact.host,
        port=contact.port,
        fingerprint=contact.host_key.fingerprint,
        line=contact.host_key.line,
        accepted=contact.trusted,
        changed=contact.changed,
        through=contact.through,
    )
