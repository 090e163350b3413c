"""Who is mailed what. Django's test runner keeps the mails instead of sending them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from webapp.accounts.models import Role, User
from webapp.config import addresses
from webapp.notices.deliveries import deliver
from webapp.notices.fan_out import follow
from webapp.notices.models import Delivery
from webapp.records.models import DiagnosisSession, Event, Run, Target
from webapp.records.sessions import member_add, member_remove
from webapp.review.threads import comment_add

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(
    settings: Any, session_of_alice: DiagnosisSession, alice: User, bob: User, person: Callable[..., User]
) -> DiagnosisSession:
    """Alice's session with Bob and Dora, who all have an address; Eve has one, too, and is no member."""
    settings.MAIL_ON = True
    for user in (alice, bob, person("dora"), person("eve")):
        user.email = f"{user.username}@example.org"
        user.save()
        if user.username in {"bob", "dora"}:
            member_add(session_of_alice, user=user, added_by=alice, role=Role.REVIEWER)
    return session_of_alice


def told(session: DiagnosisSession) -> dict[str, list[str]]:
    """Who gets which subjects of what is news now."""
    mail.outbox.clear()
    for pk in follow(session.pk):
        deliver(pk)
    found: dict[str, list[str]] = {}
    for message in mail.outbox:
        found.setdefault(message.to[0].partition("@")[0], []).append(str(message.subject))
    return found


def test_a_proposal_is_told_to_the_others(team: DiagnosisSession, alice: User) -> None:
    Event.record(team, "decision_proposed", alice, number=2)
    found = told(team)
    subject = f"alice proposes decision 2 in “{team.title}”."
    assert found == {"bob": [subject], "dora": [subject]}
    assert f"/sessions/{team.pk}/decisions/2" in mail.outbox[0].body


def test_a_mention_is_told_to_those_named(team: DiagnosisSession, alice: User) -> None:
    comment_add(team, author=alice, text="@bob, and @eve who may not see it, and @alice herself")
    assert list(told(team)) == ["bob"]


def test_the_rest_is_off_until_it_is_chosen(team: DiagnosisSession, alice: User, bob: User, client: Client) -> None:
    Event.record(team, "link_made", alice, person="Rolf")
    assert told(team) == {}
    client.force_login(bob)
    client.post("/account/notices", {"kinds": ["host_asked", "no such"]})
    Event.record(team, "link_made", alice, person="Rolf")
    Event.record(team, "decision_proposed", alice, number=2)
    assert told(team) == {
        "bob": [f"alice asks Rolf for the host’s half in “{team.title}”."],
        "dora": [f"alice proposes decision 2 in “{team.title}”."],
    }


def test_only_long_runs_are_told(team: DiagnosisSession, alice: User, bob: User, client: Client) -> None:
    client.force_login(bob)
    client.post("/account/notices", {"kinds": ["run_finished"]})
    target = Target.objects.create(session=team, role="guest", agent="ssh", created_by=alice)
    for number, lasted in enumerate((59, 61), 1):
        now = timezone.now()
        run = Run.objects.create(
            session=team, target=target, number=number, kind="probes", state="failed",
            created_by=alice, started_at=now - timedelta(seconds=lasted), ended_at=now,
        )  # fmt: skip
        about = {"run": str(run.pk), "number": number, "what": "probes", "state": "failed"}
        Event.record(team, "run_finished", None, **about)
    assert told(team) == {"bob": [f"Run 2 in “{team.title}” ended: failed."]}


def test_a_title_cannot_add_a_header(team: DiagnosisSession, alice: User) -> None:
    DiagnosisSession.objects.filter(pk=team.pk).update(title="x\r\nBcc: eve@example.org")
    Event.record(team, "decision_proposed", alice, number=2)
    assert set(told(team)) == {"bob", "dora"}
    assert "\n" not in mail.outbox[0].subject
    assert mail.outbox[0].recipients() in (["bob@example.org"], ["dora@example.org"])


def test_what_happened_long_ago_is_not_told(team: DiagnosisSession, alice: User) -> None:
    event = Event.record(team, "decision_proposed", alice, number=2)
    Event.objects.filter(pk=event.pk).update(at=timezone.now() - timedelta(days=1, seconds=1))
    assert told(team) == {}


def test_who_left_meanwhile_gets_nothing(team: DiagnosisSession, alice: User, bob: User) -> None:
    Event.record(team, "decision_proposed", alice, number=2)
    made = follow(team.pk)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    mail.outbox.clear()
    for pk in made:
        deliver(pk)
    assert [message.to for message in mail.outbox] == [["dora@example.org"]]
    assert Delivery.objects.get(user=bob).state == "failed"


def test_who_was_removed_while_a_mail_waited_does_not_get_it(team: DiagnosisSession, alice: User, bob: User) -> None:
    Event.record(team, "decision_proposed", alice, number=2)
    waiting = follow(team.pk)
    member_remove(team, user=bob, removed_by=alice)
    mail.outbox.clear()
    for pk in waiting:
        deliver(pk)
    assert [message.to for message in mail.outbox] == [["dora@example.org"]]


def test_without_a_mail_server_nothing_is_mailed_and_the_page_says_so(
    team: DiagnosisSession, alice: User, client: Client, settings: Any
) -> None:
    settings.MAIL_ON = False
    Event.record(team, "decision_proposed", alice, number=2)
    assert told(team) == {}
    assert not Delivery.objects.exists()
    client.force_login(alice)
    assert "This Peerpath sends no mail" in html_of(client.get("/account"))


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("smtp://me:p%40ss@mail.example", ("mail.example", 587, "me", "p@ss", False, True)),
        ("smtps://mail.example:4650", ("mail.example", 4650, "", "", True, False)),
        ("smtp+plain://127.0.0.1", ("127.0.0.1", 25, "", "", False, False)),
    ],
)
def test_a_mail_server_s_address_is_taken_apart(url: str, found: tuple[object, ...]) -> None:
    read = addresses.mail(url)
    assert (read.host, read.port, read.user, read.password, read.tls, read.starttls) == found
    assert "p@ss" not in repr(read)
