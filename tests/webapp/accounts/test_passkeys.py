"""Passkeys beside the codes: added with the password, used once a challenge, and by nobody else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.auth import SESSION_KEY
from django.db.models import QuerySet
from django.test import Client
from fido2.utils import websafe_encode

from tests.pages import html_of
from tests.webapp.accounts.soft_key import SoftKey
from webapp.accounts import passkey_domain, second_factor
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db
PAGE, ADD, CODE = "/account/second-factor", "/account/second-factor/passkey", "/sign-in/code"
HERE = "peerpath.example"


@pytest.fixture(autouse=True)
def _by_https(settings: Any) -> None:
    settings.PUBLIC_URL = f"https://{HERE}"


@pytest.fixture
def key() -> SoftKey:
    return SoftKey(f"https://{HERE}", HERE)


def with_codes(user: User) -> None:
    if not second_factor.is_on(user):
        TOTP.activate(user, generate_totp_secret())


def stored() -> QuerySet[Any]:
    rows: QuerySet[Any] = Authenticator.objects.filter(type=Authenticator.Type.WEBAUTHN)
    return rows


def added(client: Client, user: User, key: SoftKey, **typed: str) -> str:
    """Added by the page; what the page says then."""
    with_codes(user)
    client.force_login(user)
    answer = key.create(client.get(PAGE).context["asked"])
    sent = {"answer": answer, "name": "desk", "password": f"{user.username}-secret-1", **typed}
    return html_of(client.post(ADD, sent, follow=True))


def password_given(client: Client, user: User) -> str:
    """The options on the page that asks for the second half."""
    client.logout()
    client.post("/sign-in", {"username": user.username, "password": f"{user.username}-secret-1"})
    asked = client.get(CODE).context["asked"]
    return str(asked) if asked else ""


def signed_in(client: Client, answer: str) -> bool:
    client.post(CODE, {"answer": answer})
    return SESSION_KEY in client.session


def test_it_signs_in_after_the_password(client: Client, alice: User, key: SoftKey) -> None:
    assert "in place of a code" in added(client, alice, key)
    options = password_given(client, alice)
    assert SESSION_KEY not in client.session
    assert signed_in(client, key.get(options))
    kept = stored().get()
    assert (kept.data["name"], kept.data["uses"]) == ("desk", 2)
    assert kept.last_used_at is not None
    client.post(f"{ADD}/remove", {"passkey": str(kept.pk)})
    assert password_given(client, alice) == ""


def test_a_browser_is_asked_in_the_form_that_it_parses(client: Client, alice: User, key: SoftKey) -> None:
    """As parseCreationOptionsFromJSON and parseRequestOptionsFromJSON take it (WebAuthn level 3)."""
    added(client, alice, key)
    new = json.loads(client.get(PAGE).context["asked"])
    assert new["rp"] == {"id": HERE, "name": "Peerpath"}
    assert (new["user"]["name"], new["user"]["displayName"]) == ("alice", "alice")
    assert [one["id"] for one in new["excludeCredentials"]] == [websafe_encode(key.id)]
    assert {-7, -257} <= {one["alg"] for one in new["pubKeyCredParams"]}
    asked = json.loads(password_given(client, alice))
    assert (asked["rpId"], asked["userVerification"]) == (HERE, "discouraged")
    assert [one["id"] for one in asked["allowCredentials"]] == [websafe_encode(key.id)]
    for text in (new["challenge"], new["user"]["id"], asked["challenge"]):
        assert re.fullmatch(r"[A-Za-z0-9_-]{10,}", text)


def test_an_answer_counts_once_and_for_its_challenge(client: Client, alice: User, key: SoftKey) -> None:
    added(client, alice, key)
    answer = key.get(password_given(client, alice))
    assert signed_in(client, answer)
    password_given(client, alice)
    assert not signed_in(client, answer)
    client.post(CODE, {"answer": key.get(client.get(CODE).context["asked"])})
    assert SESSION_KEY in client.session


@pytest.mark.parametrize("wrong", ["origin", "below", "port", "rp_id", "copied", "unknown"])
def test_what_is_not_this_key_on_this_page_signs_nobody_in(
    client: Client, alice: User, key: SoftKey, wrong: str
) -> None:
    added(client, alice, key)
    options = password_given(client, alice)
    match wrong:
        case "origin":
            key.origin = "https://peerpath.example.evil"
        case "below":
            key.origin = f"https://wiki.{HERE}"
        case "port":
            key.origin = f"https://{HERE}:8443"
        case "rp_id":
            key.rp_id = "evil.example"
        case "copied":
            key.uses = -1  # its count does not go on
        case "unknown":
            key = SoftKey(key.origin, key.rp_id)
    assert not signed_in(client, key.get(options))


def test_nobody_elses_key_signs_in(client: Client, alice: User, bob: User, key: SoftKey) -> None:
    his = SoftKey(key.origin, key.rp_id)
    added(client, bob, his)
    added(client, alice, key)
    assert not signed_in(client, his.get(password_given(client, alice)))


@pytest.mark.parametrize(
    "answer", ["", "{", "[]", "{}", '{"id": 7}', '{"id": "ä"}', "[" * 5000, '{"id": "' + "A" * 3000]
)
def test_what_is_no_answer_is_refused_in_words(client: Client, alice: User, key: SoftKey, answer: str) -> None:
    added(client, alice, key)
    client.get(PAGE)
    sent = {"answer": answer, "password": "alice-secret-1"}
    assert client.post(ADD, sent, follow=True).status_code == 200
    assert stored().count() == 1
    password_given(client, alice)
    refused = client.post(CODE, {"answer": answer})
    assert refused.status_code == 403
    assert "none of your passkeys" in html_of(refused)


def test_adding_one_asks_for_the_password_and_for_codes_first(client: Client, alice: User, key: SoftKey) -> None:
    assert "not your password" in added(client, alice, key, password="wrong")
    assert not stored().exists()
    added(client, alice, key)
    second_factor.turn_off(alice)
    assert not stored().exists()
    with_codes(alice)
    answer = key.create(client.get(PAGE).context["asked"])
    second_factor.turn_off(alice)
    client.post(ADD, {"answer": answer, "password": "alice-secret-1"})
    assert not stored().exists()


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://127.0.0.1:8000", ""),
        ("https://192.0.2.1", ""),
        ("http://peerpath.example", ""),
        ("http://localhost:8000", "localhost"),
        ("https://peerpath.example:8443", "peerpath.example"),
    ],
)
def test_where_browsers_give_passkeys(client: Client, alice: User, settings: Any, url: str, place: str) -> None:
    settings.PUBLIC_URL = url
    assert passkey_domain.place() == place
    with_codes(alice)
    client.force_login(alice)
    page = html_of(client.get(PAGE))
    assert ("Add a passkey" in page) is bool(place)
    assert ("Browsers give passkeys to" in page) is not bool(place)
