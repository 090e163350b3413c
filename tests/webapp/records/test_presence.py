"""What is new since a person looked, and who is here now."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Event, Visit
from webapp.records.presence import AWAY
from webapp.records.sessions import member_add, session_open

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> tuple[User, User]:
    return User.objects.create_user("alice"), User.objects.create_user("bob")


@pytest.fixture
def session(people: tuple[User, User]) -> DiagnosisSession:
    alice, bob = people
    made = session_open(owner=alice, title="t")
    member_add(made, user=bob, added_by=alice)
    return made


def page(session: DiagnosisSession, user: User, path: str = "symptom") -> str:
    client = Client()
    client.force_login(user)
    return html_of(client.get(f"/sessions/{session.pk}/{path}"))


def gone_for(session: DiagnosisSession, user: User, time: timedelta) -> None:
    Visit.objects.filter(session=session, user=user).update(at=timezone.now() - time)


def test_what_came_while_away_is_new_until_the_next_absence(
    session: DiagnosisSession, people: tuple[User, User]
) -> None:
    alice, bob = people
    assert "· new" not in page(session, bob)
    gone_for(session, bob, AWAY * 2)
    Event.record(session, "step_saved", alice, step="symptom")
    assert page(session, bob).count("· new") == 1
    assert page(session, bob).count("· new") == 1  # still this look
    gone_for(session, bob, AWAY * 2)
    assert "· new" not in page(session, bob)


def test_people_see_who_else_is_here(session: DiagnosisSession, people: tuple[User, User]) -> None:
    alice, bob = people
    page(session, alice)
    assert "here now" in page(session, bob)
    gone_for(session, alice, timedelta(minutes=2))
    assert "here now" not in page(session, bob)


def test_the_feed_answers_only_what_is_new(session: DiagnosisSession, people: tuple[User, User]) -> None:
    client = Client()
    client.force_login(people[0])
    address = f"/sessions/{session.pk}/activity"
    first = client.get(address)
    seen = first.context["seen_activity"]
    assert client.get(address, {"seen": seen}).status_code == 204
    Event.record(session, "step_saved", people[1], step="symptom")
    assert "saved" in html_of(client.get(address, {"seen": seen}))


@pytest.mark.skipif(not settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite's own")
@pytest.mark.django_db(transaction=True)
def test_nobody_who_only_looks_waits_for_a_database_that_is_locked(
    session: DiagnosisSession, people: tuple[User, User]
) -> None:
    """As by a purge that gives its space back."""
    alice, _ = people
    reader = Client()
    reader.force_login(alice)
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert reader.get(f"/sessions/{session.pk}/symptom").status_code == 200
        assert time.monotonic() - began < 20, "who writes waits that long"
        other.execute("ROLLBACK")
    assert not Visit.objects.filter(user=alice).exists()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        assert cursor.fetchone() == (20_000,), "who writes waits as before"
