"""What leaves a session is redacted by default, and the same name has the same token in all of it."""

from __future__ import annotations

import pytest
from django.test import Client

from agents.facts import View
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records import redaction
from webapp.records.diagnoses import session_diagnosis
from webapp.records.intake import take_text
from webapp.records.models import DiagnosisSession
from webapp.records.redaction import hiding, redacted
from webapp.records.sessions import session_open
from webapp.review.decision_fields import Wording
from webapp.review.decisions import decision_draft

pytestmark = pytest.mark.django_db
FIRST = b"kestrel is the host\nqemu uuid=7d1c2f3e-55aa-4b0e-8f61-0c9d8e7f6a5b\n"
SECOND = b"root@kestrel:~# uname -a\nLinux kestrel 6.14.8-2-pve #1 SMP\n198.51.100.23\n"


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    session = session_open(owner=alice, title="kestrel is slow")
    for raw in (FIRST, SECOND):
        take_text(session, raw, user=alice, view=View.HOST)
    return session


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def test_a_name_learnt_later_is_hidden_in_what_came_before(session: DiagnosisSession) -> None:
    first, second = session.evidence.order_by("pk")
    assert redacted(first).text.startswith("<host-1> is the host")
    assert redacted(second).text.startswith("root@<host-1>:~# uname -a\nLinux <host-1> 6.14.8-2-pve")


def test_a_download_is_redacted_and_the_raw_one_stays_possible(session: DiagnosisSession, browser: Client) -> None:
    page = f"/sessions/{session.pk}/evidence/{session.evidence.order_by('pk')[1].name}"
    assert "?download=redacted" in html_of(browser.get(page))
    answer = browser.get(page, {"download": "redacted"})
    shown = html_of(answer)
    assert "kestrel" not in shown
    assert "198.51.100.23" not in shown
    assert "# redacted: host name, 2 in lines 1, 2" in shown
    assert ".redacted.txt" in answer["Content-Disposition"]
    assert browser.get(page, {"download": "1"}).content == SECOND


def test_a_decisions_export_names_nobody_unless_asked(session: DiagnosisSession, browser: Client, alice: User) -> None:
    wording = Wording(
        title="Ask the admin of kestrel",
        chosen=("engine_profile",),
        reason="198.51.100.23 is it, 198.51.100.24 is not; mail mirela@birchworks.de",
    )
    decision = decision_draft(session, user=alice, wording=wording, result=session_diagnosis(session))
    page = f"/sessions/{session.pk}/decisions/{decision.number}"
    export = html_of(browser.get(page, {"format": "md"}))
    for secret in ("kestrel", "198.51.100", "mirela", "alice"):
        assert secret not in export
    assert "\\<ip-1\\> is it, \\<ip-2\\> is not; mail \\<email-1\\>" in export
    raw = html_of(browser.get(page, {"format": "md", "raw": "1"}))
    assert "kestrel" in raw
    assert "Proposed by: alice" in raw


def test_a_large_output_is_redacted_in_a_child_or_not_given(
    session: DiagnosisSession, browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "LARGE_BYTES", 20)
    assert hiding(session)("kestrel") == "<host-1>"
    monkeypatch.setattr(redaction, "TIMEOUT_S", 0.0)
    take_text(session, b"one more\n" * 9, user=alice, view=View.HOST)
    page = f"/sessions/{session.pk}/evidence/{session.evidence.order_by('pk')[0].name}"
    assert browser.get(page, {"download": "redacted"}).status_code == 503
