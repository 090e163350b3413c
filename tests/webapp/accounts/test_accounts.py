"""Accounts come from one-time links; guessing a password is slow; people see what is theirs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from webapp.accounts.models import OneTimeLink, Role, Tally, User
from webapp.records.sessions import LastOperatorError, member_add, member_remove, session_open
from worker.reconciler import reconcile_once

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


def test_the_first_link_makes_an_administrator_once(client: Client) -> None:
    _, token = OneTimeLink.make(makes_admin=True)
    page = client.get(f"/welcome/{token}")
    assert page.status_code == 200
    answer = client.post(f"/welcome/{token}", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 302
    assert User.objects.get(username="alice").is_staff
    again = Client().post(f"/welcome/{token}", {"username": "mallory", "password": PASSWORD})
    assert again.status_code == 410
    assert not User.objects.filter(username="mallory").exists()


def test_only_the_hash_of_a_link_is_stored() -> None:
    link, token = OneTimeLink.make(makes_admin=False)
    assert token not in str(vars(link))


def test_an_old_link_opens_nothing(client: Client) -> None:
    link, token = OneTimeLink.make(makes_admin=True)
    OneTimeLink.objects.filter(pk=link.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    assert client.get(f"/welcome/{token}").status_code == 410


@pytest.mark.parametrize("password", ["short", "password123"])
def test_a_weak_password_is_refused_and_keeps_the_link(client: Client, password: str) -> None:
    _, token = OneTimeLink.make(makes_admin=False)
    answer = client.post(f"/welcome/{token}", {"username": "bob", "password": password})
    assert answer.status_code == 200
    assert not User.objects.exists()
    assert OneTimeLink.find(token)


def test_five_wrong_passwords_make_the_right_one_wait(client: Client) -> None:
    User.objects.create_user("alice", password=PASSWORD)
    for _ in range(5):
        wrong = client.post("/sign-in", {"username": "alice", "password": "guess"})
        assert wrong.status_code == 403
    right = client.post("/sign-in", {"username": "Alice", "password": PASSWORD})
    assert right.status_code == 429


def test_signing_in_leads_back_and_never_elsewhere(client: Client) -> None:
    User.objects.create_user("alice", password=PASSWORD)
    typed = {"username": "alice", "password": PASSWORD}
    inside = client.post("/sign-in", {**typed, "next": "/decisions"})
    assert inside.headers["Location"] == "/decisions"
    outside = client.post("/sign-in", {**typed, "next": "https://elsewhere.example/"})
    assert outside.headers["Location"] == "/"


def test_nobody_sees_anything_without_an_account(client: Client) -> None:
    owner = User.objects.create_user("alice", password=PASSWORD)
    session = session_open(owner=owner, title="private")
    for path in ("/", "/decisions", f"/sessions/{session.pk}/diagnosis"):
        answer = client.get(path)
        assert answer.status_code == 302
        assert "/sign-in" in answer.headers["Location"]


def test_a_session_is_for_its_members_and_administrators() -> None:
    alice, bob, root = (User.objects.create_user(name, password=PASSWORD) for name in ("alice", "bob", "root"))
    root.is_staff = True
    root.save()
    session = session_open(owner=alice, title="hers")
    address = f"/sessions/{session.pk}/symptom"

    def sees(user: User) -> int:
        client = Client()
        client.force_login(user)
        return client.get(address).status_code

    assert [sees(alice), sees(bob), sees(root)] == [200, 404, 200]
    member_add(session, user=bob, added_by=alice)
    assert sees(bob) == 200


def test_only_administrators_invite(client: Client) -> None:
    client.force_login(User.objects.create_user("bob", password=PASSWORD))
    assert client.post("/people").status_code == 403
    assert not OneTimeLink.objects.exists()


def test_an_invitation_carries_a_role(client: Client) -> None:
    _, token = OneTimeLink.make(makes_admin=False, role=Role.REVIEWER)
    client.post(f"/welcome/{token}", {"username": "bob", "password": PASSWORD})
    assert User.objects.get(username="bob").role == Role.REVIEWER


@pytest.fixture
def root(client: Client) -> User:
    user = User.objects.create_user("root", password=PASSWORD, is_staff=True, is_superuser=True)
    client.force_login(user)
    return user


def test_an_administrator_changes_what_an_account_may(client: Client, root: User) -> None:
    bob = User.objects.create_user("bob", password=PASSWORD)
    client.post("/people", {"person": "bob", "role": "administrator"})
    bob.refresh_from_db()
    assert bob.is_staff
    client.post("/people", {"person": "bob", "role": "viewer"})
    bob.refresh_from_db()
    assert (bob.is_staff, bob.role, bob.may_open_sessions) == (False, "viewer", False)


def test_a_closed_account_is_out_at_once_and_can_come_back(client: Client, root: User) -> None:
    User.objects.create_user("bob", password=PASSWORD)
    theirs = Client()
    theirs.login(username="bob", password=PASSWORD)
    client.post("/people", {"person": "bob", "role": "out", "confirm": "rob"})
    assert theirs.get("/").status_code == 200
    client.post("/people", {"person": "bob", "role": "out", "confirm": "bob"})
    assert theirs.get("/").status_code == 302
    assert not Client().login(username="bob", password=PASSWORD)
    client.post("/people", {"person": "bob", "role": "operator"})
    assert Client().login(username="bob", password=PASSWORD)


@pytest.mark.parametrize("asked", ["viewer", "out"])
def test_the_last_administrator_stays_one(client: Client, root: User, asked: str) -> None:
    sent = {"person": "root", "role": asked, "confirm": "root"}
    page = client.post("/people", sent, follow=True)
    assert "has to stay an administrator" in html_of(page)
    root.refresh_from_db()
    assert root.is_staff
    assert root.is_active


def test_a_session_keeps_an_operator(root: User) -> None:
    bob = User.objects.create_user("bob")
    session = session_open(owner=bob, title="t")
    with pytest.raises(LastOperatorError):
        member_add(session, user=bob, added_by=root, role=Role.VIEWER)
    with pytest.raises(LastOperatorError):
        member_remove(session, user=bob, removed_by=root)
    member_add(session, user=root, added_by=bob)
    assert member_remove(session, user=bob, removed_by=root)


def test_a_count_ends_and_is_forgotten() -> None:
    assert [Tally.counts("a", most=2, wait_s=60) for _ in range(3)] == [True, True, False]
    assert Tally.counts("b", most=2, wait_s=60)
    past = timezone.now() - timedelta(seconds=1)
    Tally.objects.filter(key="a").update(ends_at=past)
    assert [Tally.counts("a", most=2, wait_s=60) for _ in range(3)] == [True, True, False]
    Tally.objects.filter(key="b").update(ends_at=past)
    reconcile_once()
    assert list(Tally.objects.values_list("key", flat=True)) == ["a"]
