"""The database has the hash of a sign-in's key alone, and whatever Django does with one still works."""

from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from webapp.accounts.models import User
from webapp.accounts.session_store import SessionStore, stored_key

pytestmark = pytest.mark.django_db
COOKIE, PASSWORD = "peerpath_session", "correct horse battery"


@pytest.fixture
def signed_in() -> Client:
    User.objects.create_user("alice", password=PASSWORD)
    browser = Client()
    browser.post("/sign-in", {"username": "alice", "password": PASSWORD})
    return browser


def enters(browser: Client) -> bool:
    return browser.get("/account").status_code == 200


def with_cookie(key: str) -> Client:
    browser = Client()
    browser.cookies[COOKIE] = key
    return browser


def test_what_is_kept_lets_nobody_in(signed_in: Client) -> None:
    key = signed_in.cookies[COOKIE].value
    kept = Session.objects.get().session_key
    assert kept == stored_key(key) != key
    assert enters(signed_in)
    assert enters(with_cookie(key))
    assert not enters(with_cookie(kept))


def test_signing_out_ends_it(signed_in: Client) -> None:
    key = signed_in.cookies[COOKIE].value
    signed_in.post("/sign-out")
    assert not enters(with_cookie(key))
    assert not Session.objects.exists()


def test_a_new_key_takes_the_place_of_the_old_one() -> None:
    store = SessionStore()
    store["seen"] = 1
    store.create()
    first = store.session_key
    store.cycle_key()
    second = store.session_key
    assert first
    assert second
    assert Session.objects.get().session_key == stored_key(second)
    assert SessionStore(second)["seen"] == 1
    assert SessionStore().exists(second)
    assert SessionStore(first).get("seen") is None
    SessionStore().delete()  # of nobody
    assert Session.objects.count() == 1
