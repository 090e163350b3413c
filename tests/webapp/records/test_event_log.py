"""A tampered event is found; the log is filtered and taken away whole."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.pages.session.audit import CHECKED_UNASKED
from webapp.records.models import DiagnosisSession, Event
from webapp.records.sessions import session_open

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> DiagnosisSession:
    alice = User.objects.create_user("alice")
    made = session_open(owner=alice, title="t")
    for step in ("symptom", "hypothesis"):
        Event.record(made, "step_saved", alice, step=step)
    Event.record(made, "run_finished", None, number=1, state="lost")
    return made


def verify() -> str:
    out = StringIO()
    call_command("audit", "verify", stdout=out, stderr=StringIO())
    return out.getvalue()


def test_a_whole_log_is_said_to_be_whole(session: DiagnosisSession) -> None:
    assert "4 events of 1 sessions: every chain is whole" in verify()


@pytest.mark.parametrize(
    "tampering", [{"data": {"step": "other"}}, {"kind": "commented"}, {"actor_name": "bob"}, {"number": 9}]
)
def test_a_tampered_event_is_found(session: DiagnosisSession, tampering: dict[str, object]) -> None:
    Event.objects.filter(session=session, number=2).update(**tampering)
    with pytest.raises(CommandError, match="1 of 1 sessions were altered"):
        verify()
    browser = Client()
    browser.force_login(session.owner)
    assert "tampered with" in html_of(browser.get(f"/sessions/{session.pk}/log"))


def test_a_deleted_event_is_found(session: DiagnosisSession) -> None:
    Event.objects.filter(session=session, number=2).delete()
    with pytest.raises(CommandError):
        verify()


def test_the_log_leads_to_every_run(session: DiagnosisSession) -> None:
    browser = Client()
    browser.force_login(session.owner)
    page = html_of(browser.get(f"/sessions/{session.pk}/log?kind=run_finished"))
    assert f'href="/sessions/{session.pk}/runs/1"' in page


def test_the_log_is_filtered_and_exported(session: DiagnosisSession) -> None:
    browser = Client()
    browser.force_login(session.owner)
    address = f"/sessions/{session.pk}/log"
    narrowed = browser.get(address, {"kind": "step_saved", "actor": "alice"}).context["log"]
    assert [event.number for event in narrowed] == [3, 2]
    lines = html_of(browser.get(address, {"format": "jsonl"})).splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["number"] for row in rows] == [1, 2, 3, 4]
    assert rows[-1]["actor"] == ""
    assert len({row["hash"] for row in rows}) == 4


def test_a_long_log_is_checked_when_asked_and_never_called_whole_before(
    session: DiagnosisSession, client: Client
) -> None:
    Event.objects.bulk_create(
        Event(session=session, number=n, kind="commented", at=timezone.now(), hash="0" * 64)
        for n in range(session.events.count() + 1, CHECKED_UNASKED + 2)
    )
    client.force_login(session.owner)
    page = f"/sessions/{session.pk}/log"
    said = html_of(client.get(page))
    assert "not checked" in said
    assert "chain holds" not in said
    assert "The log was tampered with" in html_of(client.get(page, {"check": "1"}))
