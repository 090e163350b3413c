"""Accounts by a program: only where it is allowed, by an administrator's token that is short; and one's
own tokens, which may be looked at and ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from django.utils import timezone

from tests.webapp.api.conftest import Program
from webapp.accounts import second_factor
from webapp.accounts.models import ApiToken, OneTimeLink, Scope, User, handle_of
from webapp.api.api import api

pytestmark = pytest.mark.django_db
NEW = {"username": "dora", "password": "correct horse battery"}


@pytest.fixture
def allowed(settings: Any) -> Any:
    """As with PEERPATH_API_PEOPLE=1."""
    settings.API_PEOPLE = True
    return settings


def invited(ask: Program, role: str = "reviewer", **headers: str) -> Any:
    answer = ask("POST", "/people/invitations", {"role": role}, **headers)
    assert answer.status_code == 201, answer.content
    return answer.json()


def with_second_factor(person: User) -> None:
    Authenticator.objects.create(user=person, type=Authenticator.Type.TOTP, data={})


# --- who may -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["alice", "carol"])
@pytest.mark.parametrize("on", [False, True])
def test_the_scope_is_offered_to_administrators_where_it_is_allowed(
    settings: Any, person: Callable[..., User], who: str, on: bool
) -> None:
    settings.API_PEOPLE, browser = on, Client()
    browser.force_login(person(who, is_staff=who == "carol"))
    sent = {"name": "hr", "scopes": ["people"], "days": "7"}
    offered = on and who == "carol"
    assert (b'value="people"' in browser.get("/account").content) is offered
    assert browser.post("/account/tokens", sent).status_code == (200 if offered else 422)
    assert ApiToken.objects.exists() is offered


def test_such_a_token_is_good_for_a_week_at_most(allowed: Any, carol: User) -> None:
    browser = Client()
    browser.force_login(carol)
    sent = {"name": "hr", "scopes": ["read", "people"], "days": "30"}
    refused = browser.post("/account/tokens", sent)
    assert refused.status_code == 422
    assert "1 week at most" in refused.content.decode()
    with pytest.raises(ValueError, match="7 days"):
        ApiToken.make(carol, name="x", scopes=["people"], days=8)


def test_it_counts_for_nothing_as_soon_as_one_of_its_reasons_is_gone(
    allowed: Any, carol: User, person: Callable[..., User], program: Callable[..., Program]
) -> None:
    person("root", is_staff=True)
    ask = program(carol)
    assert ask("GET", "/people").status_code == 200
    assert "people" in ask("GET", "/me").json()["scopes"]
    allowed.API_PEOPLE = False
    refused = ask("GET", "/people")
    assert refused.status_code == 403
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert "PEERPATH_API_PEOPLE=1" in refused.json()["detail"]
    assert ask("GET", "/me").json()["scopes"] == ["read", "write", "run"]
    allowed.API_PEOPLE = True
    User.objects.filter(pk=carol.pk).update(is_staff=False)
    refused = ask("POST", "/people/invitations", {"role": "administrator"})
    assert refused.status_code == 403
    assert "carol is none" in refused.json()["detail"]
    assert not OneTimeLink.objects.exists()
    browser = Client()
    browser.force_login(carol)
    assert "people: without effect" in browser.get("/account").content.decode()


@pytest.mark.parametrize("scopes", [["read", "write", "run"], ["read"]])
def test_an_administrators_other_tokens_see_to_nobody(
    allowed: Any, carol: User, bob: User, program: Callable[..., Program], scopes: list[str]
) -> None:
    ask, at = program(carol, *scopes), f"/people/{bob.pk}"
    for answer in (
        ask("GET", "/people"),
        ask("POST", "/people/invitations", {"role": "viewer"}),
        ask("PUT", at, {"role": "administrator"}),
        ask("DELETE", at),
        ask("DELETE", f"{at}/second-factor"),
    ):
        assert answer.status_code == 403
        assert 'scope="people"' in answer.headers["WWW-Authenticate"]
    bob.refresh_from_db()
    assert (bob.is_active, bob.is_staff) == (True, False)


# --- what it does ------------------------------------------------------------------------------------


def test_somebody_invited_by_a_program_comes_in_by_the_page(
    allowed: Any, carol: User, program: Callable[..., Program], caplog: pytest.LogCaptureFixture
) -> None:
    ask = program(carol, "people")
    made = invited(ask, Idempotency_Key="k")
    assert invited(ask, Idempotency_Key="k") == {**made, "address": None}
    path = "/welcome/" + made["address"].rpartition("/")[2]
    assert Client().post(path, NEW).status_code == 302
    dora = User.objects.get(username="dora")
    assert dora.role == "reviewer"
    listed = ask("GET", "/people").json()["items"][0]
    assert listed.pop("last_login") is not None
    assert listed == {
        "id": dora.pk,
        "username": "dora",
        "role": "reviewer",
        "way_in": True,
        "second_factor": False,
        "by_program": True,
    }
    browser = Client()
    browser.force_login(carol)
    assert browser.get("/people").content.decode().count("invited by a program") == 1
    handle = handle_of(ask.token)
    assert f"carol with token {handle} invited somebody as reviewer" in caplog.text


@pytest.mark.parametrize("ended", ["revoked", "expired", "off", "demoted"])
def test_an_invitation_ends_with_what_allowed_it(
    allowed: Any, carol: User, person: Callable[..., User], program: Callable[..., Program],
    ended: str,
) -> None:  # fmt: skip
    person("root", is_staff=True)
    ask = program(carol)
    path = "/welcome/" + invited(ask, "administrator")["address"].rpartition("/")[2]
    assert Client().get(path).status_code == 200
    if ended == "off":
        allowed.API_PEOPLE = False
    elif ended == "demoted":
        User.objects.filter(pk=carol.pk).update(is_staff=False)
    elif ended == "expired":
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    else:
        assert ask("DELETE", f"/tokens/{handle_of(ask.token)}").status_code == 204
    assert Client().post(path, NEW).status_code == 410
    assert not User.objects.filter(username="dora").exists()


def test_roles_and_ways_in_change_as_on_the_page(
    allowed: Any, carol: User, bob: User, program: Callable[..., Program],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    ask, at, theirs = program(carol), f"/people/{bob.pk}", Client()
    theirs.force_login(bob)
    assert ask("PUT", at, {"role": "viewer"}).json()["role"] == "viewer"
    bob.refresh_from_db()
    assert not bob.may_open_sessions
    assert ask("DELETE", at).status_code == 204
    assert theirs.get("/").status_code == 302
    ways_in = {one["username"]: one["way_in"] for one in ask("GET", "/people").json()["items"]}
    assert ways_in == {"carol": True, "bob": False}
    assert ask("PUT", at, {"role": "operator"}).json()["way_in"] is True
    assert ask("PUT", at, {"role": "owner"}).status_code == 422
    assert ask("PUT", "/people/0", {"role": "viewer"}).status_code == 404
    for done in ("made bob viewer", "shut bob out", "made bob operator"):
        assert f"carol with token {handle_of(ask.token)} {done}" in caplog.text


def test_somebody_stays_an_administrator(allowed: Any, carol: User, program: Callable[..., Program]) -> None:
    ask, at = program(carol), f"/people/{carol.pk}"
    for answer in (ask("DELETE", at), ask("PUT", at, {"role": "operator"})):
        assert answer.status_code == 409
        assert "has to stay an administrator" in answer.json()["detail"]
    carol.refresh_from_db()
    assert (carol.is_active, carol.is_staff) == (True, True)


def test_another_ones_second_factor_is_reset_and_never_ones_own(
    allowed: Any, carol: User, bob: User, program: Callable[..., Program],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    ask = program(carol)
    for person in (bob, carol):
        with_second_factor(person)
    assert ask("DELETE", f"/people/{bob.pk}/second-factor").status_code == 204
    assert not second_factor.is_on(bob)
    assert ask("DELETE", f"/people/{bob.pk}/second-factor").status_code == 409
    own = ask("DELETE", f"/people/{carol.pk}/second-factor")
    assert own.status_code == 409
    assert "with your password" in own.json()["detail"]
    browser = Client()
    browser.force_login(carol)
    assert "reset-carol" not in browser.get("/people").content.decode()
    browser.post("/people/second-factor", {"person": "carol", "confirm": "carol"})
    assert second_factor.is_on(carol)
    assert "reset the second factor of bob" in caplog.text


def test_who_stands_for_another_instances_person_is_nobody_here(
    allowed: Any, carol: User, person: Callable[..., User], program: Callable[..., Program]
) -> None:
    away, ask = person("dora (elsewhere)", is_active=False), program(carol)
    assert ask("PUT", f"/people/{away.pk}", {"role": "administrator"}).status_code == 404
    assert [one["username"] for one in ask("GET", "/people").json()["items"]] == ["carol"]
    browser = Client()
    browser.force_login(carol)
    browser.post("/people", {"person": away.username, "role": "administrator"})
    away.refresh_from_db()
    assert (away.is_active, away.is_staff) == (False, False)


# --- one's own tokens --------------------------------------------------------------------------------


def test_ones_own_tokens_are_listed_without_their_secrets(
    alice: User, bob: User, program: Callable[..., Program]
) -> None:
    ask, other = program(alice, "read"), program(alice, "run")
    program(bob)
    answer = ask("GET", "/tokens")
    found = {one["handle"]: one for one in answer.json()["items"]}
    assert found.keys() == {handle_of(ask.token), handle_of(other.token)}
    assert found[handle_of(ask.token)]["asking"] is True
    assert found[handle_of(other.token)]["in_effect"] == ["run"]
    for one in (ask, other):
        assert one.token.rpartition("_")[2] not in answer.content.decode()
    assert other("GET", "/tokens").status_code == 403


@pytest.mark.parametrize("scope", Scope.values)
def test_a_token_of_any_scope_ends_those_of_its_owner(
    alice: User, bob: User, program: Callable[..., Program], scope: str
) -> None:
    ask, other, bobs = program(alice, scope), program(alice), program(bob)
    assert ask("DELETE", f"/tokens/{handle_of(bobs.token)}").status_code == 404
    assert bobs("GET", "/me").status_code == 200
    for one in (other, ask):
        assert ask("DELETE", f"/tokens/{handle_of(one.token)}").status_code == 204
        assert one("GET", "/me").status_code == 401


def test_no_operation_makes_a_token_or_changes_how_one_signs_in() -> None:
    words = ("token", "account", "password", "mail", "passkey", "second-factor")
    found = {
        (method, path.removeprefix("/api/v1"))
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method in methods
        if any(word in path for word in words)
    }
    assert found == {
        ("get", "/tokens"),
        ("delete", "/tokens/{handle}"),
        ("delete", "/people/{person_id}/second-factor"),
    }
