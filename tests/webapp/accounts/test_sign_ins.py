"""The database has the hash of a sign-in's key alone, and whatever Django does with one still works."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as Plain
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


def test_who_was_signed_in_before_the_upgrade_stays_so() -> None:
    user = User.objects.create_user("alice", password=PASSWORD)
    store = Plain()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "webapp.pages.signed_in.Backend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    assert store.session_key
    assert not enters(with_cookie(store.session_key))
    migration = import_module("webapp.accounts.migrations.0009_sign_ins_by_their_hash")
    migration.hash_keys(apps, None)
    assert enters(with_cookie(store.session_key))
