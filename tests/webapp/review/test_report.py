"""The report says what the diagnosis says, and names nobody unless asked."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession
from webapp.review.threads import comment_add
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> DiagnosisSession:
    alice = User.objects.create_user("alice")
    made = open_sample("kpro6@host", owner=alice)
    comment_add(made, author=alice, text="<script>alert(1)</script> at 10.9.8.7", stance="dispute")
    return made


def get(session: DiagnosisSession, form: str, **asked: str) -> str:
    client = Client()
    client.force_login(session.owner)
    answer = client.get(f"/sessions/{session.pk}/report.{form}", asked)
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    return html_of(answer)


@pytest.mark.parametrize("form", ["md", "json"])
def test_nobody_is_named_unless_asked(session: DiagnosisSession, form: str) -> None:
    hidden, raw = get(session, form), get(session, form, raw="1")
    assert "10.9.8.7" in raw
    assert "10.9.8.7" not in hidden
    assert "alice" not in hidden


def test_markdown_is_text_that_nobody_can_break_out_of(session: DiagnosisSession) -> None:
    text = get(session, "md", raw="1")
    assert "<script>" not in text
    assert text.startswith("# Sample: GLM")


def test_json_holds_the_diagnosis_when_nothing_is_hidden(session: DiagnosisSession) -> None:
    raw, hidden = json.loads(get(session, "json", raw="1")), json.loads(get(session, "json"))
    assert raw["diagnosis"]["schema"] == "peerpath.diagnosis/1"
    assert "diagnosis" not in hidden
    assert hidden["parts"]
    assert hidden["redacted"]


@pytest.mark.parametrize("form", ["html", "exe"])
def test_other_forms_are_not_there(session: DiagnosisSession, form: str) -> None:
    client = Client()
    client.force_login(session.owner)
    assert client.get(f"/sessions/{session.pk}/report.{form}").status_code == 404
