"""A decision keeps its evidence; a blocked option cannot be chosen; a record goes stale in the open."""

from __future__ import annotations

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records import intake
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import member_add
from webapp.review.closing_evidence import Proof
from webapp.review.decision_fields import Wording
from webapp.review.decisions import DecisionError, decision_draft, superseded_pins
from webapp.review.madr import as_markdown
from webapp.review.models import Decision, DecisionState, Word
from webapp.review.workflow import (
    CLOSED,
    MOVES,
    counting,
    decision_apply,
    decision_close,
    decision_judge,
    decision_propose,
    decision_renew,
    decision_withdraw,
)
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="correct horse battery")


@pytest.fixture
def bob() -> User:
    return User.objects.create_user("bob", password="correct horse battery")


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


def draft(session: DiagnosisSession, user: User, *chosen: str, unsafe: bool = False) -> Decision:
    wording = Wording(
        title="Profile first", chosen=chosen, reason="Most of it is unexplained.", unsafe_understood=unsafe
    )
    return decision_draft(session, user=user, wording=wording, result=session_diagnosis(session))


def proposed(session: DiagnosisSession, user: User, *chosen: str) -> Decision:
    decision = draft(session, user, *chosen)
    decision_propose(decision, user=user)
    return decision


def newer_evidence(session: DiagnosisSession, user: User) -> None:
    text = b"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n"
    intake.take_text(session, text, user=user, hint="guest")


def test_a_record_holds_every_option_as_it_stood_and_pins_its_evidence(session: DiagnosisSession, alice: User) -> None:
    decision = draft(session, alice, "engine_profile", "gpudirect_clique")
    statuses = {option["id"]: option["status"] for option in decision.options}
    assert statuses["engine_profile"] == "recommended"
    assert statuses["pcie_without_q35"] == "blocked"
    stored = {e.name: e.sha256 for e in session.evidence.all()}
    assert decision.pins
    assert all(stored[pin["name"]] == pin["sha256"] for pin in decision.pins)
    assert superseded_pins(decision, facts_of(session)) == []
    assert "as typed, not read: " in decision.context
    assert "11 output tok/s at 1 request at once" in decision.context


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
        draft(session, alice, *chosen)
    assert not session.decisions.exists()


def test_an_unsafe_option_needs_that_its_reason_was_read(session: DiagnosisSession, alice: User) -> None:
    assert draft(session, alice, "acs_override", unsafe=True).number == 1


def test_what_only_the_operator_does_needs_nobody_else(session: DiagnosisSession, alice: User) -> None:
    decision = proposed(session, alice, "engine_profile")
    assert decision.state == DecisionState.APPROVED
    assert not decision.approvals.exists()


def test_what_touches_the_host_needs_somebody_else(session: DiagnosisSession, alice: User, bob: User) -> None:
    facts = facts_of(session)
    decision = proposed(session, alice, "gpudirect_clique")
    assert decision.state == DecisionState.PROPOSED
    with pytest.raises(DecisionError, match="somebody else"):
        decision_judge(decision, by=alice, word=Word.APPROVED, reason="", facts=facts)
    with pytest.raises(DecisionError, match="already"):
        decision_apply(decision, user=alice, facts=facts)
    decision_judge(decision, by=bob, word=Word.APPROVED, reason="", facts=facts)
    assert decision.state == DecisionState.APPROVED


def test_a_quorum_of_two_counts_people_not_clicks(session: DiagnosisSession, alice: User, bob: User) -> None:
    DiagnosisSession.objects.filter(pk=session.pk).update(quorum=2)
    session.refresh_from_db()
    facts, decision = facts_of(session), proposed(session, alice, "gpudirect_clique")
    for _ in range(2):
        decision_judge(decision, by=bob, word=Word.APPROVED, reason="", facts=facts)
    assert decision.state == DecisionState.PROPOSED
    carol = User.objects.create_user("carol", password="correct horse battery")
    decision_judge(decision, by=carol, word=Word.APPROVED, reason="", facts=facts)
    assert decision.state == DecisionState.APPROVED


def test_who_proposes_it_anew_is_not_also_who_approved_it(session: DiagnosisSession, alice: User, bob: User) -> None:
    DiagnosisSession.objects.filter(pk=session.pk).update(quorum=2)
    session.refresh_from_db()
    decision = proposed(session, bob, "gpudirect_clique")
    decision_judge(decision, by=alice, word=Word.APPROVED, reason="", facts=facts_of(session))
    assert [approval.by for approval in counting(decision)] == [alice]
    decision_withdraw(decision, user=alice)
    decision_propose(decision, user=alice)
    assert counting(decision) == []


def test_only_what_was_read_is_approved(session: DiagnosisSession, alice: User, bob: User, client: Client) -> None:
    member_add(session, user=bob, added_by=alice)
    decision = proposed(session, alice, "gpudirect_clique")
    page = f"/sessions/{session.pk}/decisions/{decision.number}"
    client.force_login(bob)
    seen = client.get(page).context["decision"].content_sha256
    decision_withdraw(decision, user=alice)
    Decision.objects.filter(pk=decision.pk).update(reason="Another one.")
    decision.refresh_from_db()
    decision_propose(decision, user=alice)
    word = {"approves": "yes", "seen": seen}
    said = html_of(client.post(f"{page}/judge", word, follow=True))
    assert "It has changed since you opened the page: alice proposed it anew just now." in said
    assert not decision.approvals.exists()
    client.post(f"{page}/judge", {**word, "seen": decision.content_sha256})
    decision.refresh_from_db()
    assert decision.state == DecisionState.APPROVED


def test_a_rejection_needs_words_and_can_be_answered(session: DiagnosisSession, alice: User, bob: User) -> None:
    facts, decision = facts_of(session), proposed(session, alice, "gpudirect_clique")
    with pytest.raises(DecisionError, match="why not"):
        decision_judge(decision, by=bob, word=Word.REJECTED, reason=" ", facts=facts)
    decision_judge(decision, by=bob, word=Word.REJECTED, reason="not in December", facts=facts)
    assert decision.state == DecisionState.REJECTED
    decision_withdraw(decision, user=alice)
    decision_propose(decision, user=alice)
    assert decision.state == DecisionState.PROPOSED


def test_applying_opens_an_epoch_and_closing_needs_words(session: DiagnosisSession, alice: User) -> None:
    decision, facts = proposed(session, alice, "engine_profile"), facts_of(session)
    with pytest.raises(DecisionError, match="what was seen"):
        decision_close(decision, user=alice, state="verified", outcome=" ", proof=Proof())
    with pytest.raises(DecisionError, match="already"):
        decision_close(decision, user=alice, state="verified", outcome="faster", proof=Proof())
    decision_apply(decision, user=alice, facts=facts)
    with pytest.raises(DecisionError, match="already"):
        decision_apply(decision, user=alice, facts=facts)
    session.refresh_from_db()
    assert session.epoch == 1
    decision_close(decision, user=alice, state="not_verified", outcome="still NS", proof=Proof())
    decision.refresh_from_db()
    assert decision.outcome == "still NS"


def test_newer_evidence_makes_a_record_stale_and_asks_for_approval_again(
    session: DiagnosisSession, alice: User, bob: User, client: Client
) -> None:
    decision, facts = proposed(session, alice, "gpudirect_clique"), facts_of(session)
    decision_judge(decision, by=bob, word=Word.APPROVED, reason="go", facts=facts)
    newer_evidence(session, alice)
    assert "guest.p2p_read" in superseded_pins(decision, facts_of(session))
    client.force_login(alice)
    page = html_of(client.get(f"/sessions/{session.pk}/decisions/{decision.number}"))
    assert "stale" in page
    with pytest.raises(DecisionError, match="renew the record first"):
        decision_apply(decision, user=alice, facts=facts_of(session))
    decision_renew(decision, user=alice, result=session_diagnosis(session))
    assert decision.state == DecisionState.PROPOSED
    assert superseded_pins(decision, facts_of(session)) == []
    assert counting(decision) == []
    decision_judge(decision, by=bob, word=Word.APPROVED, reason="still", facts=facts_of(session))
    assert decision.state == DecisionState.APPROVED


def test_a_record_takes_the_place_of_another_when_it_is_proposed(session: DiagnosisSession, alice: User) -> None:
    first = proposed(session, alice, "gpudirect_clique")
    wording = Wording(chosen=("engine_profile",), reason="first things first")
    second = decision_draft(session, user=alice, wording=wording, result=session_diagnosis(session), supersedes=first)
    first.refresh_from_db()
    assert first.state == DecisionState.PROPOSED
    decision_propose(second, user=alice)
    first.refresh_from_db()
    assert first.state == DecisionState.SUPERSEDED


def test_two_people_writing_one_draft_lose_no_word(
    session: DiagnosisSession, alice: User, bob: User, client: Client
) -> None:
    decision = draft(session, alice, "engine_profile")
    member_add(session, user=bob, added_by=alice)
    typed = {"chosen": "engine_profile", "version": decision.version, "then": "keep"}
    address = f"/sessions/{session.pk}/decide?draft={decision.number}"
    client.force_login(bob)
    assert client.post(address, {**typed, "reason": "Bob's reason"}).status_code == 302
    client.force_login(alice)
    refused = client.post(address, {**typed, "reason": "Alice's reason"})
    assert refused.status_code == 409
    both = html_of(refused)
    assert "Bob&#x27;s reason" in both
    assert "Alice&#x27;s reason" in both
    again = {**typed, "version": refused.context["typed"]["version"], "reason": "Alice's reason"}
    assert client.post(address, again).status_code == 302
    decision.refresh_from_db()
    assert decision.reason == "Alice's reason"


STATES = st.sampled_from(list(DecisionState))


@given(st.lists(STATES, max_size=12))
def test_a_record_never_moves_but_along_its_moves(path: list[DecisionState]) -> None:
    """What was applied is never a draft again, and what is over stays so."""
    state, seen = DecisionState.DRAFT, [DecisionState.DRAFT]
    for wanted in path:
        if wanted in MOVES[state]:
            state = wanted
            seen.append(state)
    if DecisionState.APPLIED in seen:
        later = seen[seen.index(DecisionState.APPLIED) :]
        assert set(later) <= {DecisionState.APPLIED, *CLOSED}
        assert DecisionState.APPROVED in seen[: seen.index(DecisionState.APPLIED)]


def test_the_export_is_markdown_that_nobody_can_break_out_of(session: DiagnosisSession, alice: User) -> None:
    decision = draft(session, alice, "engine_profile")
    decision.reason = "because\n# not a heading <script>alert(1)</script>"
    text = as_markdown(decision)
    assert "\n# not" not in text
    assert "<script>" not in text
    assert all(pin["sha256"] in text for pin in decision.pins)


def test_a_lone_operator_may_decide_alone_and_the_log_says_so(
    session: DiagnosisSession, alice: User, bob: User, client: Client
) -> None:
    member_add(session, user=bob, added_by=alice)
    address = f"/sessions/{session.pk}/members"
    client.force_login(bob)
    page = html_of(client.post(address, {"quorum": "0"}, follow=True))
    assert "alice or an administrator sets this" in page
    client.force_login(alice)
    for wrong in ("-1", "10", "x", ""):
        client.post(address, {"quorum": wrong})
    session.refresh_from_db()
    assert session.quorum == 1
    client.post(address, {"quorum": "0"})
    session.refresh_from_db()
    assert proposed(session, alice, "gpudirect_clique").state == DecisionState.APPROVED
    assert session.events.get(kind="quorum_set").data == {"quorum": 0}
