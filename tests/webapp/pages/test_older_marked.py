"""What was read before the last change says so, with when, wherever it is shown."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils.html import strip_tags

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
OLDER = re.compile(r"older, \d+ [A-Z][a-z]{2} \d{4} \d\d:\d\d")


@pytest.fixture
def session() -> DiagnosisSession:
    return open_sample("kpro6@after", owner=User.objects.create_user("alice"))


def page(session: DiagnosisSession, path: str) -> str:
    client = Client()
    client.force_login(session.owner)
    answer = client.get(f"/sessions/{session.pk}/{path}")
    assert answer.status_code == 200
    return " ".join(strip_tags(html_of(answer)).split())


def test_the_guest_s_board_of_before_is_no_board_of_now(session: DiagnosisSession) -> None:
    text = page(session, "guest")
    board = text[text.index("Emulated board") :][:80]
    assert "i440fx" in board.lower()
    assert OLDER.search(board)
    listed = text[text.index("GPUs nvidia-smi lists") :][:60]
    assert not OLDER.search(listed)


def test_claims_and_sources_of_before_are_marked(session: DiagnosisSession) -> None:
    assert re.search(r"virt_kind:2 older, \d", page(session, "diagnosis"))
    summary = page(session, "summary")
    assert "its VM has q35 since" in page(session, "diagnosis")
    assert re.search(r"virt_kind paste@\w+, [^·]{5,60}, before the last change", summary)
    assert summary.count("topo_p2p_read paste@") == 1, "the same bytes of two states are one output"


def test_every_refuted_hypothesis_stands_once_in_the_summary(session: DiagnosisSession) -> None:
    """The old code showed eight, and a hypothesis again for each of its claims."""
    refuted = {n for n, v in session_diagnosis(session).verdicts.items() if v.kind == "refuted"}
    text = page(session, "summary")
    said = text[text.index("Refuted") : text.index("Open, and what would tell")]
    claims = [h.claim.removesuffix(".") for h in all_hypotheses() if h.id in refuted]
    assert len(claims) > 8
    assert [said.count(f"{claim}:") for claim in claims] == [1] * len(claims)
    assert text.count("because the VM grants no GPUDirect clique:") == 1


def test_a_log_that_does_not_tell_is_not_called_unread(session: DiagnosisSession) -> None:
    text = page(session, "guest")
    xid = text[text.index("GPU error events (Xid)") :][:120]
    assert "not known" in xid
    assert "not run" not in text[text.index("What is known of the guest") :]
    assert not re.search(r"dmesg:1\b", xid), "no line shows it, so none is cited"


def test_kvm_and_its_firmware_s_name_are_one_answer(session: DiagnosisSession) -> None:
    text = page(session, "guest")
    kind = text[text.index("Virtualisation kind") :][:80]
    assert "output says" not in kind


def test_a_change_after_which_nothing_was_read_makes_all_of_it_older(session: DiagnosisSession) -> None:
    session.epoch += 1
    session.save(update_fields=["epoch"])
    result = session_diagnosis(session, facts_of(session))
    assert result.headline.startswith("Nothing was read since the last change. Before it: most of")
    assert "refused peer access (NS on 56 of 56 ordered pairs, before the last change)" in result.summary
    assert OLDER.search(page(session, "guest").partition("GPUs nvidia-smi lists")[2][:60])
    assert for_a_manager(result).startswith("Nothing was looked at since the last change")
    (finding,) = [f for f in result.findings if f.id == "not_read_since"]
    assert finding.severity == "warning"
