"""Tokens: made and revoked by their owner, good for a while, stored as hashes, slow to guess."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from tests.webapp.api.conftest import Program
from webapp.accounts import throttle
from webapp.accounts.models import ApiToken, Scope, User, handle_of
from webapp.records.sessions import session_open

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def made_on_the_page(browser: Client) -> str:
    page = browser.post("/account/tokens", {"name": "ci", "scopes": ["read"], "days": "30"})
    found = page.context["made"]
    assert found in html_of(page)
    return str(found)


def test_a_token_is_shown_once_and_only_its_hash_is_kept(browser: Client, capsys: pytest.CaptureFixture[str]) -> None:
    text = made_on_the_page(browser)
    assert Program(text)("GET", "/me").json()["username"] == "alice"
    assert text not in html_of(browser.get("/account"))
    call_command("dumpdata", "accounts", "api", "sessions")
    dump = capsys.readouterr().out
    assert handle_of(text) in dump
    assert text.split("_", 2)[2] not in dump


def test_a_token_says_what_it_may(browser: Client) -> None:
    ask = Program(made_on_the_page(browser))
    assert ask("GET", "/me").json()["scopes"] == ["read"]
    refused = ask("POST", "/sessions", {})
    assert refused.status_code == 403
    assert 'scope="write"' in refused.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    "sent", [{"scopes": ["read"], "days": "30"}, {"name": "x", "days": "30"},
             {"name": "x", "scopes": ["all"], "days": "30"},
             {"name": "x", "scopes": ["read"], "days": "9999"}],
)  # fmt: skip
def test_a_token_needs_a_name_known_scopes_and_an_end(browser: Client, sent: dict[str, object]) -> None:
    assert browser.post("/account/tokens", sent).status_code == 422
    assert not ApiToken.objects.exists()


def test_a_revoked_token_opens_nothing(browser: Client) -> None:
    ask = Program(made_on_the_page(browser))
    revoke = f"/account/tokens/{handle_of(ask.token)}/revoke"
    assert "Type ci" in html_of(browser.post(revoke, {"confirm": "x"}, follow=True))
    assert ask("GET", "/me").status_code == 200
    assert browser.post(revoke, {"confirm": "ci"}).status_code == 302
    assert ask("GET", "/me").status_code == 401


def test_nobody_revokes_another_ones_token(browser: Client, bob: User) -> None:
    token, text = ApiToken.make(bob, name="bob's", scopes=["read"], days=1)
    assert browser.post(f"/account/tokens/{token.handle}/revoke").status_code == 404
    assert Program(text)("GET", "/me").status_code == 200
    assert "bob's" not in html_of(browser.get("/account"))


def test_an_expired_token_opens_nothing(alice: User) -> None:
    token, text = ApiToken.make(alice, name="old", scopes=Scope.values, days=1)
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Program(text)("GET", "/me").status_code == 401


def test_guessing_the_rest_of_a_token_is_slow(program: Callable[..., Program], alice: User) -> None:
    right = program(alice)
    wrong = Program(right.token[:-1] + ("x" if right.token[-1] != "x" else "y"))
    answers = [wrong("GET", "/me").status_code for _ in range(throttle.TRIES + 1)]
    assert answers == [401] * throttle.TRIES + [429]
    assert wrong("GET", "/me").headers["Retry-After"] == "60"
    # The right one is beyond guessing, and nobody holds its program up by trying.
    assert right("GET", "/me").status_code == 200


def test_right_tokens_are_not_counted(program: Callable[..., Program], alice: User) -> None:
    ask = program(alice)
    assert {ask("GET", "/me").status_code for _ in range(3 * throttle.TRIES)} == {200}


@pytest.mark.parametrize("text", ["", "x", "peerpath_", "peerpath_abcdefabcdef", "Ünïcode", "a b c"])
def test_what_is_no_token_opens_nothing(db: None, text: str) -> None:
    asked = {"authorization": f"Bearer {text}".encode().decode("latin-1")}
    assert Client().get("/api/v1/me", headers=asked).status_code == 401
    assert Client().get("/api/v1/me", headers={"authorization": text}).status_code == 401


def test_large_requests_are_for_who_has_a_token(program: Callable[..., Program], alice: User) -> None:
    body = {"title": "x" * 70_000}
    refused = Program("peerpath_abcdefabcdef_x")("POST", "/sessions", body)
    assert refused.status_code == 413
    assert refused.json()["status"] == 413
    assert program(alice)("POST", "/sessions", body).status_code == 422


def test_a_large_request_is_its_tokens_owners_whoever_is_signed_in(
    program: Callable[..., Program], alice: User, bob: User, carol: User
) -> None:
    session = session_open(owner=alice, title="x")
    sent = {"text": "x" * 70_000}
    with_a_cookie = Client()
    with_a_cookie.force_login(carol)
    asked = {"authorization": f"Bearer {program(bob).token}"}
    address = f"/api/v1/sessions/{session.pk}/evidence"
    refused = with_a_cookie.post(address, sent, "application/json", headers=asked)
    assert refused.status_code == 404
    assert not session.evidence.exists()
    taken = program(alice)("POST", f"/sessions/{session.pk}/evidence", sent)
    assert taken.status_code == 201
    assert session.evidence.get().created_by == alice


# --- the account page besides tokens ---------------------------------------------------------------


def test_a_password_is_changed_with_the_old_one_and_ends_other_browsers(browser: Client, alice: User) -> None:
    other = Client()
    other.force_login(alice)
    new = {"new_password1": "correct horse battery", "new_password2": "correct horse battery"}
    wrong = browser.post("/account/password", {"old_password": "nope", **new})
    assert wrong.status_code == 422
    right = browser.post("/account/password", {"old_password": "alice-secret-1", **new})
    assert right.status_code == 302
    assert browser.get("/account").status_code == 200
    assert other.get("/account").status_code == 302
    alice.refresh_from_db()
    assert alice.check_password("correct horse battery")


def test_the_old_password_cannot_be_guessed_quickly(browser: Client, alice: User) -> None:
    new = {"new_password1": "correct horse battery", "new_password2": "correct horse battery"}
    for _ in range(throttle.TRIES):
        browser.post("/account/password", {"old_password": "nope", **new})
    late = browser.post("/account/password", {"old_password": "alice-secret-1", **new})
    assert late.status_code == 429
    alice.refresh_from_db()
    assert alice.check_password("alice-secret-1")


@pytest.mark.parametrize(
    ("sent", "status", "kept"),
    [("alice@example.org", 302, "alice@example.org"), ("", 302, ""), ("no address", 422, "")],
)
def test_an_address_is_kept_when_it_is_one(browser: Client, alice: User, sent: str, status: int, kept: str) -> None:
    assert browser.post("/account/email", {"email": sent}).status_code == status
    alice.refresh_from_db()
    assert alice.email == kept
