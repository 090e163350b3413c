"""A second, different answer to the same question is a new version beside the earlier one."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from agents.facts import View
from agents.facts.p2p import P2P_READ
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records import intake
from webapp.records.case_facts import facts_of
from webapp.records.models import DiagnosisSession, StoredReading
from webapp.records.reading_versions import EarlierAnswer
from webapp.records.recorded import Recorded

pytestmark = pytest.mark.django_db


def matrix(code: str, last: str = "\n GPU1\t{}\tX") -> bytes:
    rows = f" \tGPU0\tGPU1\n GPU0\tX\t{code}{last.format(code)}\n"
    return f"$ nvidia-smi topo -p2p r\n{rows}".encode()


def take(session: DiagnosisSession, user: User, raw: bytes) -> Recorded:
    return intake.take_text(session, raw, user=user, view=View.GUEST)


def earlier(taken: Recorded) -> EarlierAnswer | None:
    (part,) = [p for p in taken.understood if p.reader == "guest.topo_p2p_read"]
    return part.earlier


def test_a_different_answer_replaces_the_earlier_one_which_is_kept(
    session_of_alice: DiagnosisSession, alice: User
) -> None:
    first = take(session_of_alice, alice, matrix("NS"))
    assert earlier(first) is None
    second = take(session_of_alice, alice, matrix("OK"))
    assert earlier(second) == EarlierAnswer(first.evidence.name, 3, replaced=True)
    best, other = facts_of(session_of_alice).all(P2P_READ)
    assert (best.source, other.source) == (second.evidence.name, first.evidence.name)
    assert bytes(session_of_alice.evidence.get(pk=first.evidence.pk).body) == matrix("NS")


def test_a_less_complete_answer_does_not_replace(session_of_alice: DiagnosisSession, alice: User) -> None:
    first = take(session_of_alice, alice, matrix("NS"))
    found = earlier(take(session_of_alice, alice, matrix("OK", last="")))
    assert found == EarlierAnswer(first.evidence.name, 3, replaced=False)
    best = facts_of(session_of_alice).best(P2P_READ)
    assert best
    assert best.source == first.evidence.name


def test_the_same_answer_again_and_one_after_a_change_are_no_versions(
    session_of_alice: DiagnosisSession, alice: User
) -> None:
    take(session_of_alice, alice, matrix("NS"))
    assert earlier(take(session_of_alice, alice, b"\n" + matrix("NS"))) is None
    session_of_alice.epoch = 1
    session_of_alice.save()
    assert earlier(take(session_of_alice, alice, matrix("OK"))) is None


def test_the_page_says_so_with_a_link(session_of_alice: DiagnosisSession, alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    first = take(session_of_alice, alice, matrix("NS"))
    page = f"/sessions/{session_of_alice.pk}/paste/guest"
    shown = html_of(browser.post(page, {"text": matrix("OK").decode()}))
    assert "Replaces an earlier answer, which is kept" in shown
    assert f"/evidence/{first.evidence.name}?line=3" in shown


def stale(session: DiagnosisSession, alice: User) -> None:
    """As a worse parser would have left it: OK where the text says NS."""
    take(session, alice, matrix("NS"))
    rows = StoredReading.objects.filter(fact_id="guest.p2p_read")
    value = json.loads(json.dumps(rows.get().value).replace('"NS"', '"OK"'))
    assert rows.update(value=value, parsed_by="0" * 12) == 1


def reread(session: DiagnosisSession, *options: str) -> str:
    out = StringIO()
    call_command("reread", "--session", str(session.pk), *options, stdout=out)
    return out.getvalue()


def test_reread_tells_which_facts_and_verdicts_changed(session_of_alice: DiagnosisSession, alice: User) -> None:
    take(session_of_alice, alice, b"$ systemd-detect-virt\nkvm\n")
    stale(session_of_alice, alice)
    said = reread(session_of_alice)
    assert "guest.p2p_read: the value changed" in said
    assert "hypothesis nccl_level_too_low: open → refuted" in said
    assert "2 pieces of evidence read, 1 now read differently" in said
    event = session_of_alice.events.first()
    assert event
    assert event.data["facts"] == ["guest.p2p_read"]
    assert "hypothesis" not in reread(session_of_alice)


def test_reread_in_json(session_of_alice: DiagnosisSession, alice: User) -> None:
    take(session_of_alice, alice, matrix("NS"))
    StoredReading.objects.filter(fact_id="guest.p2p_read").update(kind="unreadable", value=None)
    found = json.loads(reread(session_of_alice, "--json"))
    assert found["schema"] == "peerpath.reread/1"
    (session,) = found["sessions"]
    assert session["facts"] == [
        {"id": "guest.p2p_read", "before": "unreadable", "after": "known", "value_changed": False}
    ]
    assert all(set(v) == {"id", "before", "after"} for v in session["verdicts"])
