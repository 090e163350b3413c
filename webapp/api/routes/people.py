"""Who has an account: inviting, roles, shutting out. Only where whoever runs this Peerpath allows it to
tokens, for administrators, with the scope people; checked and logged as on the page."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from pydantic import BaseModel

from webapp.accounts import changing
from webapp.accounts.changing import OUT, AccountError
from webapp.accounts.models import ApiToken, Role, User
from webapp.api.asking import Sent
from webapp.api.auth import PEOPLE
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError
from webapp.api.remembering import remembered

router = Router(tags=["people"])
ONE = "/people/{int:person_id}"
AccountRole = Literal["viewer", "reviewer", "operator", "administrator"]


class Person(BaseModel):
    """role: what they become in sessions they are added to. way_in: false while they are shut out.
    by_program: they came by an invitation that a token made."""

    id: int
    username: str
    role: str
    way_in: bool
    second_factor: bool
    by_program: bool
    last_login: datetime | None


class AsWhat(Sent):
    role: AccountRole


class Invitation(BaseModel):
    """address: of the page where they choose a name and a password, good once. Shown once; null when an
    answer is repeated. It ends with the token that made it."""

    address: str | None
    role: str
    expires_at: datetime


def _shown(person: User) -> Person:
    return Person(
        id=person.pk,
        username=person.username,
        role=Role.ADMINISTRATOR if person.is_staff else person.role,
        way_in=person.is_active,
        second_factor=vars(person)["second_factor"],
        by_program=vars(person)["by_program"],
        last_login=person.last_login,
    )


def _person(person_id: int) -> User:
    return get_object_or_404(changing.people(), pk=person_id)


def _token(request: HttpRequest) -> ApiToken:
    token: ApiToken = request.auth  # type: ignore[attr-defined]
    return token


def _changed(request: HttpRequest, person: User, role: str) -> None:
    token = _token(request)
    try:
        changing.account_change(person, role, by=changing.signed(token.owner, token))
    except AccountError as error:
        raise RefusedError(409, str(error)) from error


@router.get("/people", auth=PEOPLE, response=Page[Person])
def list_people(request: HttpRequest, asked: Query[Asked]) -> Page[Person]:
    """Everyone with an account here, the newest first."""
    found, following = page(changing.people(), asked, by="id")
    return Page[Person](items=[_shown(one) for one in found], next=following)


@router.post("/people/invitations", auth=PEOPLE, response={201: Invitation})
@remembered(without="address")
def invite_person(request: HttpRequest, sent: AsWhat) -> Status[Invitation]:
    """Makes a one-time link for an account, good for 24 hours."""
    token = _token(request)
    link, address = changing.invite(sent.role, by=token.owner, token=token)
    made = Invitation(address=address, role=sent.role, expires_at=link.expires_at)
    return Status(201, made)


@router.put(ONE, auth=PEOPLE, response=Person)
def set_account_role(request: HttpRequest, person_id: int, sent: AsWhat) -> Person:
    """Says what somebody may do; who was shut out is let in again."""
    person = _person(person_id)
    _changed(request, person, sent.role)
    return _shown(person)


@router.delete(ONE, auth=PEOPLE, response={204: None})
def shut_out(request: HttpRequest, person_id: int) -> Status[None]:
    """Somebody has no way in any more, nor what they made: tokens, links, webhooks, runs that have not
    begun. What they did stays theirs."""
    _changed(request, _person(person_id), OUT)
    return Status(204, None)


@router.delete(ONE + "/second-factor", auth=PEOPLE, response={204: None})
def reset_second_factor(request: HttpRequest, person_id: int) -> Status[None]:
    """For somebody else who lost both authenticator and recovery codes: the password alone signs them in."""
    token = _token(request)
    try:
        changing.second_factor_reset(_person(person_id), by=token.owner, token=token)
    except AccountError as error:
        raise RefusedError(409, str(error)) from error
    return Status(204, None)
