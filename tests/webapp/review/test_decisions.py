"""A decision keeps its evidence; a blocked option cannot be chosen; a record goes stale in the open."""

from __future__ import annotations

import pytest
from django.test import Client

from webapp.accounts.models import User
from webapp.review.decisions import (
    DecisionError,
    decision_apply,
    decision_close,
    decision_record,
    superseded_pins,
)
from webapp.review.madr import as_markdown
from webapp.review.models import Decision
from webapp.triage.case_facts import facts_of
from webapp.triage.diagnoses import session_diagnosis
from webapp.triage.models import DiagnosisSession
from webapp.triage.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="correct horse battery")


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


def record(session: DiagnosisSession, user: User, *chosen: str, unsafe: bool = False) -> Decision:
    return decision_record(
        session,
        user=user,
        title="Profile first",
        chosen=chosen,
        reason="Most of it is unexplained.",
        unsafe_understood=unsafe,
        result=session_diagnosis(session),
    )


def test_a_record_holds_every_option_as_it_stood_and_pins_its_evidence(
    session: DiagnosisSession, alice: User
) -> None:
    decision = record(session, alice, "engine_profile", "gpudirect_clique")
    statuses = {option["id"]: option["status"] for option in decision.options}
    assert statuses["engine_profile"] == "recommended"
    assert statuses["pcie_without_q35"] == "blocked"
    stored = {e.name: e.sha256 for e in session.evidence.all()}
    assert decision.pins
    assert all(stored[pin["name"]] == pin["sha256"] for pin in decision.pins)
    assert superseded_pins(decision, facts_of(session)) == []


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ((), "Choose at least one"),
        (("pcie_without_q35",), "cannot work here"),
        (("acs_override",), "unsafe"),
        (("no_such_option",), "no option"),
    ],
)
def test_what_cannot_be_chosen_says_why(
    session: DiagnosisSession, alice: User, chosen: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(DecisionError, match=problem):
        record(session, alice, *chosen)
    assert not session.decisions.exists()


def test_an_unsafe_option_needs_that_its_reason_was_read(
    session: DiagnosisSession, alice: User
) -> None:
    assert record(session, alice, "acs_override", unsafe=True).number == 1


def test_applying_opens_an_epoch_and_closing_needs_words(
    session: DiagnosisSession, alice: User
) -> None:
    decision = record(session, alice, "engine_profile")
    with pytest.raises(DecisionError, match="what was seen"):
        decision_close(decision, user=alice, state="verified", outcome=" ")
    assert not decision_close(decision, user=alice, state="verified", outcome="faster")
    assert decision_apply(decision, user=alice)
    assert not decision_apply(decision, user=alice)
    session.refresh_from_db()
    assert session.epoch == 1
    assert decision_close(decision, user=alice, state="no_effect", outcome="still NS")
    decision.refresh_from_db()
    assert decision.outcome == "still NS"


def test_newer_evidence_makes_a_record_stale(session: DiagnosisSession, alice: User) -> None:
    decision = record(session, alice, "engine_profile")
    client = Client()
    client.force_login(alice)
    text = "$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n"
    client.post(f"/sessions/{session.pk}/paste/guest", {"text": text})
    assert "guest.p2p_read" in superseded_pins(decision, facts_of(session))
    page = client.get(f"/sessions/{session.pk}/decisions/{decision.number}").content.decode()
    assert "stale" in page


def test_the_export_is_markdown_that_nobody_can_break_out_of(
    session: DiagnosisSession, alice: User
) -> None:
    decision = record(session, alice, "engine_profile")
    decision.reason = "because\n# not a heading <script>alert(1)</script>"
    text = as_markdown(decision)
    assert "\n# not" not in text
    assert "<script>" not in text
    assert all(pin["sha256"] in text for pin in decision.pins)


def test_a_comment_disputes_a_hypothesis_in_sight_of_all(
    session: DiagnosisSession, alice: User
) -> None:
    client = Client()
    client.force_login(alice)
    anchor = {"anchor": "hypothesis:compute_bound", "stance": "dispute"}
    client.post(f"/sessions/{session.pk}/comment", {**anchor, "text": "330 W is normal for decode"})
    page = client.get(f"/sessions/{session.pk}/diagnosis").content.decode()
    assert "330 W is normal for decode" in page
    client.post(f"/sessions/{session.pk}/comment", {**anchor, "text": "  "})
    assert session.comments.count() == 1
