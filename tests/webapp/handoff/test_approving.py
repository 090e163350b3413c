"""The host's admin approves or rejects by a link: what is shown, whom it counts for, and whom not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests.pages import html_of
from tests.webapp.handoff.conftest import Sent
from webapp.accounts.models import Role, User
from webapp.handoff.models import Link
from webapp.notices.wording import notice_of
from webapp.records import intake
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import member_add
from webapp.review.decision_fields import Wording
from webapp.review.decisions import decision_draft
from webapp.review.madr import as_markdown
from webapp.review.models import Decision, DecisionState, Word
from webapp.review.workflow import counting, decision_judge, decision_propose, decision_withdraw
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
Send = Callable[..., Sent]
WORD = {"approves": "yes", "name": "Erika Muster", "reason": "Sunday is free."}


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


@pytest.fixture
def decision(session: DiagnosisSession, alice: User) -> Decision:
    wording = Wording(chosen=("gpudirect_clique",), reason="The ladder stops at granted.")
    made = decision_draft(session, user=alice, wording=wording, result=session_diagnosis(session))
    decision_propose(made, user=alice)
    return made


@pytest.fixture
def send(session: DiagnosisSession, alice: User) -> Send:
    def make(may_approve: bool = True, person: str = "Erika") -> Sent:
        link, token = Link.make(
            session,
            made_by=alice,
            person=person,
            purpose="why it is slow",
            hours=24,
            phases=[],
            may_approve=may_approve,
        )
        return Sent(link, token)

    return make


def opened(sent: Sent, browser: Client | None = None) -> Client:
    browser = browser or Client()
    browser.get(f"/link/{sent.token}")
    return browser


def says(browser: Client, sent: Sent, decision: Decision, **word: str) -> str:
    """What the page says after the answer."""
    address = f"{sent.page}/judge/{decision.number}"
    answer = browser.post(address, {**WORD, **word}, follow=True)
    decision.refresh_from_db()
    return html_of(answer)


def test_she_reads_the_record_and_her_word_is_the_second_persons(
    send: Send, decision: Decision, client: Client, alice: User
) -> None:
    sent = send()
    erika = opened(sent)
    page = html_of(erika.get(sent.page))
    for shown in ("Your word is asked", "The ladder stops at granted.", "Isolation given up"):
        assert shown in page
    assert decision.content_sha256 in page
    after = says(erika, sent, decision, seen=decision.content_sha256)
    assert decision.state == DecisionState.APPROVED
    assert "Erika Muster" in after
    approval = decision.approvals.get()
    assert (approval.by, approval.label, approval.link) == (None, "Erika Muster", sent.link)
    client.force_login(alice)
    record = html_of(client.get(f"/sessions/{sent.link.session_id}/decisions/1"))
    assert "1 of 1 needed" in record
    assert "not signed in: by the link that alice, who proposed this, made for Erika" in record
    assert "Erika Muster (by a link, without an account)" in as_markdown(decision).replace("\\", "")
    event = sent.link.session.events.first()
    assert event is not None
    assert (event.kind, event.who, event.actor) == ("decision_approved", "Erika Muster", None)
    assert event.data["link_made_by"] == "alice"
    assert notice_of(event).text.startswith("Erika Muster approves decision 1")


def test_a_link_that_may_not_approve_shows_and_takes_nothing(send: Send, decision: Decision) -> None:
    sent = send(may_approve=False)
    erika = opened(sent)
    page = html_of(erika.get(sent.page))
    assert "The ladder stops at granted." not in page
    assert erika.post(f"{sent.page}/judge/1", WORD).status_code == 404
    assert not decision.approvals.exists()


@pytest.mark.parametrize("when", ["before it is opened", "after it was opened"])
def test_whoever_is_signed_in_is_no_second_person_by_a_link(
    send: Send, decision: Decision, alice: User, when: str
) -> None:
    sent, browser = send(), Client()
    if when == "after it was opened":
        opened(sent, browser)
    browser.force_login(alice)
    opened(sent, browser) if when == "before it is opened" else browser.get(sent.page)
    assert "You are signed in" in says(browser, sent, decision)
    browser.logout()
    assert "does not open, or not any more" in says(browser, sent, decision)
    assert "alice, who proposed it, opened this link too" in says(opened(sent), sent, decision)
    assert not decision.approvals.exists()


def test_a_link_that_the_proposer_opens_later_counts_no_more(
    send: Send, decision: Decision, session: DiagnosisSession, alice: User, bob: User
) -> None:
    DiagnosisSession.objects.filter(pk=session.pk).update(quorum=2)
    sent = send()
    says(opened(sent), sent, decision)
    assert len(counting(decision)) == 1
    browser = Client()
    browser.force_login(alice)
    opened(sent, browser)
    assert counting(decision) == []
    member_add(session, user=bob, added_by=alice, role=Role.OPERATOR)
    decision_withdraw(decision, user=bob)
    decision_propose(decision, user=bob)  # whom the link is not known to
    assert len(counting(decision)) == 1


def test_all_links_together_are_one_person(
    send: Send, decision: Decision, session: DiagnosisSession, bob: User
) -> None:
    DiagnosisSession.objects.filter(pk=session.pk).update(quorum=2)
    for person in ("Erika", "Rolf", "Dora"):
        sent = send(person=person)
        says(opened(sent), sent, decision, name=person)
    assert decision.state == DecisionState.PROPOSED
    decision_judge(decision, by=bob, word=Word.APPROVED, reason="", facts=facts_of(session))
    assert decision.state == DecisionState.APPROVED


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ({"name": " "}, "Say who you are"),
        ({"name": "Alice"}, "no second person"),
        ({"approves": "no", "reason": " "}, "Say why not"),
        ({"seen": "0" * 64}, "changed since you opened the page"),
    ],
)
def test_what_is_missing_is_asked_for(send: Send, decision: Decision, word: dict[str, str], answer: str) -> None:
    sent = send()
    assert answer in says(opened(sent), sent, decision, **word)
    assert not decision.approvals.exists()


def test_she_may_reject_and_the_reason_is_read(send: Send, decision: Decision) -> None:
    sent = send()
    says(opened(sent), sent, decision, approves="no", reason="not in December")
    assert decision.state == DecisionState.REJECTED
    assert decision.approvals.get().reason == "not in December"


def test_newer_evidence_is_told_before_she_approves(
    send: Send, decision: Decision, session: DiagnosisSession, alice: User
) -> None:
    sent = send()
    text = b"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n"
    intake.take_text(session, text, user=alice, hint="guest")
    erika = opened(sent)
    assert "newer evidence" in html_of(erika.get(sent.page))
    assert "renewed first" in says(erika, sent, decision)
    assert decision.state == DecisionState.PROPOSED


def test_a_closed_link_takes_no_word(send: Send, decision: Decision, alice: User) -> None:
    sent = send()
    erika = opened(sent)
    sent.link.revoke(alice)
    assert "does not open, or not any more" in says(erika, sent, decision)
    assert not decision.approvals.exists()


def test_a_name_reads_as_it_is_written(send: Send, decision: Decision, client: Client, alice: User) -> None:
    sent = send()
    says(opened(sent), sent, decision, name="\u202ebob<b>\x1b[2J")
    client.force_login(alice)
    record = html_of(client.get(f"/sessions/{sent.link.session_id}/decisions/1"))
    assert "bob&lt;b&gt;" in record
    assert "\u202e" not in record
    assert "bob<b>" not in record


def test_the_operator_chooses_it_when_the_link_is_made(session: DiagnosisSession, client: Client, alice: User) -> None:
    client.force_login(alice)
    for typed, may in ({}, False), ({"may_approve": "1"}, True):
        made = client.post(f"/sessions/{session.pk}/links/make", {"person": "Erika", **typed})
        assert session.links.first().may_approve is may  # type: ignore[union-attr]
        assert ("do not open it yourself" in html_of(made)) is may
