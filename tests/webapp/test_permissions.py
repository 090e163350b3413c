"""Every address, taken from the URL patterns: who gets an answer there, by which method, and what
becomes of things that belong to another session."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.pages import html_of
from tests.webapp.addresses import CONVERTERS, FOR_ADMINISTRATORS, ONLY_POST, PATTERNS, address, arguments_of
from webapp.accounts.models import GIVEN, Role, User
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import member_add, session_open

pytestmark = pytest.mark.django_db

# What each argument of an address is made from; an address with another one fails this test, so that
# nobody forgets it here.
ARGUMENTS = {
    *(
        "session_id",
        "role",
        "target_id",
        "run_id",
        "run_number",
        "name",
        "number",
        "token",
        "link_id",
        "answer_id",
        "benchmark",
        "sha256",
        "form",
        "key_id",
    ),
    *("phase", "act", "handle", "webhook_id", "slug"),
}
# Those of a link ask for the link instead of an account: tests/webapp/handoff.
OPEN_TO_ALL = {
    *("account:sign_in", "account:welcome", "link:enter", "link:asked", "link:answer"),
    *("link:questions", "link:judge", "link:fetch"),
    *("link:decline", "link:take_back"),
    # Each of its pages says by itself whether it needs an account: tests/webapp/help.
    *("help:index", "help:page"),
    "account:code",  # for whose password was right: tests/webapp/accounts/test_second_factor.py
    *("live", "ready", "metrics"),  # for machines: tests/webapp/operations/test_health.py
}
OF_A_SESSION = sorted(name for name, taken in CONVERTERS.items() if "session_id" in taken)
OF_ITS_PARTS = sorted(
    name
    for name in OF_A_SESSION
    if CONVERTERS[name]
    & {*("target_id", "run_id", "run_number", "name", "number"), *("link_id", "answer_id", "sha256", "webhook_id")}
)


@pytest.fixture
def parts(session_of_alice: DiagnosisSession, alice: User) -> dict[str, Any]:
    """The arguments of every address, for things that are really there."""
    return arguments_of(session_of_alice, alice)


@pytest.fixture
def signed_in() -> Callable[[User], Client]:
    def client(user: User) -> Client:
        made = Client()
        made.force_login(user)
        return made

    return client


def everything(parts: dict[str, Any]) -> tuple[int, int, int, int]:
    """How much of the session there is, to see whether a refused request changed something."""
    session = DiagnosisSession.objects.get(pk=parts["session_id"])
    return (session.events.count(), session.evidence.count(), session.members.count(), session.comments.count())


def test_every_address_is_known_to_these_tests() -> None:
    assert len(PATTERNS) > 30
    assert set().union(*CONVERTERS.values()) <= ARGUMENTS
    assert PATTERNS.keys() >= ONLY_POST | OPEN_TO_ALL | FOR_ADMINISTRATORS


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", sorted(PATTERNS.keys() - OPEN_TO_ALL))
def test_who_is_not_signed_in_is_sent_to_sign_in(client: Client, parts: dict[str, Any], name: str, method: str) -> None:
    before = everything(parts)
    answer = getattr(client, method)(address(name, parts))
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/sign-in?next=")
    assert everything(parts) == before


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", OF_A_SESSION)
def test_a_stranger_cannot_tell_a_session_from_none(
    signed_in: Callable[[User], Client], bob: User, parts: dict[str, Any], name: str, method: str
) -> None:
    before = everything(parts)
    browser = signed_in(bob)
    theirs = getattr(browser, method)(address(name, parts))
    nobodys = getattr(browser, method)(address(name, {**parts, "session_id": uuid.uuid4()}))
    if method == "get" and name in ONLY_POST:
        assert theirs.status_code == nobodys.status_code == 405
    else:
        assert theirs.status_code == nobodys.status_code in {404, 405}
    assert theirs.status_code == 405 or "nothing at this address" in html_of(theirs)
    assert everything(parts) == before


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", OF_ITS_PARTS)
def test_a_thing_of_another_session_is_not_reached_through_ones_own(
    signed_in: Callable[[User], Client], alice: User, bob: User, parts: dict[str, Any], name: str, method: str
) -> None:
    own = session_open(owner=bob, title="Bob's own")
    answer = getattr(signed_in(bob), method)(address(name, {**parts, "session_id": own.pk}))
    assert answer.status_code in {404, 405}


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_what_changes_something_is_only_taken_by_post(
    signed_in: Callable[[User], Client], carol: User, parts: dict[str, Any], name: str
) -> None:
    before = everything(parts)
    browser = signed_in(carol)
    if name in ONLY_POST:
        assert browser.get(address(name, parts)).status_code == 405
        assert everything(parts) == before
    for method in ("put", "patch", "delete"):
        assert getattr(browser, method)(address(name, parts)).status_code == 405, method


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_no_post_is_taken_without_the_token_of_a_page(carol: User, parts: dict[str, Any], name: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(carol)
    answer = browser.post(address(name, parts))
    assert answer.status_code == 403
    assert "did not come from a page of Peerpath" in html_of(answer)


@pytest.mark.parametrize("name", [n for n in OF_A_SESSION if n not in ONLY_POST])
def test_members_and_administrators_see_the_session(
    signed_in: Callable[[User], Client], alice: User, bob: User, carol: User, parts: dict[str, Any], name: str
) -> None:
    member_add(DiagnosisSession.objects.get(pk=parts["session_id"]), user=bob, added_by=alice)
    for user in (alice, bob) if name == "session:host_key" else (alice, bob, carol):
        answer = signed_in(user).get(address(name, parts))
        assert answer.status_code in {200, 302}, user.username


@pytest.mark.parametrize("name", sorted(FOR_ADMINISTRATORS))
def test_people_are_for_administrators(signed_in: Callable[[User], Client], bob: User, carol: User, name: str) -> None:
    method = "post" if name in ONLY_POST else "get"
    refused = getattr(signed_in(bob), method)(address(name, {}))
    assert refused.status_code == 403
    assert "for administrators" in html_of(refused)
    answer = getattr(signed_in(carol), method)(address(name, {}))
    assert answer.status_code == (302 if name in ONLY_POST else 200)


# What a role below an operator's may do besides reading; a new address that changes something is the
# operators' until it is named here.
FOR_REVIEWERS = {"decision:comment", "decision:judge"}
ALSO_NEED_AN_ADMINISTRATOR = {"session:add_target", "session:host_key", "session:forget_key"}


@pytest.mark.parametrize("name", OF_A_SESSION)
@pytest.mark.parametrize("role", [role for role, _ in GIVEN])
def test_a_role_changes_what_it_may_and_nothing_else(
    signed_in: Callable[[User], Client], alice: User, bob: User, parts: dict[str, Any], name: str, role: str
) -> None:
    session = DiagnosisSession.objects.get(pk=parts["session_id"])
    member_add(session, user=bob, added_by=alice, role=role)
    before = everything(parts)
    answer = signed_in(bob).post(address(name, parts))
    least = Role.REVIEWER if name in FOR_REVIEWERS else Role.OPERATOR
    if answer.status_code == 405:  # there is nothing to change there
        assert name not in ONLY_POST
    elif Role(role).covers(least):
        assert answer.status_code != 403 or name in ALSO_NEED_AN_ADMINISTRATOR
    else:
        assert answer.status_code == 403
        assert f"this needs a {least}" in html_of(answer)
        assert everything(parts) == before


@pytest.mark.parametrize("role", [role for role, _ in GIVEN])
def test_only_an_operators_account_opens_sessions(signed_in: Callable[[User], Client], bob: User, role: str) -> None:
    User.objects.filter(pk=bob.pk).update(role=role)
    for name in ("session:open_session", "session:read_outputs", "session:sample"):
        answer = signed_in(bob).post(reverse(name), {"stage": "none"})
        assert (answer.status_code == 403) == (role != "operator"), name
    assert DiagnosisSession.objects.filter(owner=bob).exists() == (role == "operator")


def test_lists_show_only_what_is_ones_own(
    signed_in: Callable[[User], Client], bob: User, parts: dict[str, Any]
) -> None:
    for page in ("/", "/decisions", "/search?q=uname"):
        assert str(parts["session_id"]) not in html_of(signed_in(bob).get(page))


def test_a_person_without_a_right_any_more_sees_nothing(
    signed_in: Callable[[User], Client], alice: User, parts: dict[str, Any]
) -> None:
    browser = signed_in(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert browser.get(address("session:diagnosis", parts)).status_code == 302
