"""A reviewer who disagrees: what they are asked, what they are told, and what stays of their word."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.pages.progress import progress_of
from webapp.pages.signed_in import Backend
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import member_add
from webapp.review.decision_fields import Wording
from webapp.review.decisions import DecisionError, decision_draft, draft_save
from webapp.review.digests import digest_refresh
from webapp.review.inbox import MOST, asked_of, said_of_mine, to_judge
from webapp.review.madr import as_markdown
from webapp.review.models import Decision, DecisionState, Word
from webapp.review.threads import comment_add, threads_of
from webapp.review.workflow import decision_judge, decision_propose, decision_withdraw
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="correct horse battery")


@pytest.fixture
def bob(session: DiagnosisSession, alice: User) -> User:
    made = User.objects.create_user("bob", password="correct horse battery", role="reviewer")
    member_add(session, user=made, added_by=alice, role="reviewer")
    return made


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


@pytest.fixture
def decision(session: DiagnosisSession, alice: User, bob: User) -> Decision:
    wording = Wording(chosen=("gpudirect_clique",), reason="The ladder stops at granted.")
    made = decision_draft(session, user=alice, wording=wording, result=session_diagnosis(session))
    decision_propose(made, user=alice)
    return made


@pytest.fixture
def browser(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


def say(decision: Decision, by: User, word: Word, reason: str = "because") -> None:
    facts = facts_of(decision.session)
    decision_judge(decision, word=word, reason=reason, facts=facts, by=by)


def count_for(user: User) -> int:
    """As the bar above every page has it."""
    found = Backend().get_user(user.pk)
    assert found is not None
    return found.waits_for_me


def change(decision: Decision, alice: User, reason: str) -> None:
    decision_withdraw(decision, user=alice)
    wording = Wording(chosen=tuple(decision.chosen), reason=reason)
    result = session_diagnosis(decision.session)
    draft_save(decision, user=alice, version=decision.version, wording=wording, result=result)
    decision_propose(decision, user=alice)


def page(decision: Decision, more: str = "") -> str:
    return f"/sessions/{decision.session_id}/decisions/{decision.number}{more}"


@pytest.mark.parametrize("word", [Word.REJECTED, Word.APPROVED, Word.CHANGES_WANTED])
def test_who_judged_an_earlier_version_is_asked_again(
    decision: Decision, alice: User, bob: User, browser: Client, word: Word
) -> None:
    assert [one.pk for one in to_judge(bob)] == [decision.pk]
    assert "1 to look at" in html_of(browser.get("/for-me"))
    if word == Word.APPROVED:  # else one yes would end it
        DiagnosisSession.objects.filter(pk=decision.session_id).update(quorum=2)
        decision.refresh_from_db()
    say(decision, bob, word)
    assert not to_judge(bob).exists()
    change(decision, alice, "The profile was read: half of it is NCCL.")
    assert [one.pk for one in to_judge(bob)] == [decision.pk]
    told = html_of(browser.get("/for-me"))
    said = {"approved": "approved it", "rejected": "rejected it"}
    assert f"changed since you {said.get(word, 'wanted changes')}" in told
    assert count_for(bob) == 1


def test_a_rejection_that_was_proposed_again_unchanged_is_asked_again(
    decision: Decision, alice: User, bob: User
) -> None:
    say(decision, bob, Word.REJECTED)
    decision_withdraw(decision, user=alice)
    decision_propose(decision, user=alice)
    assert to_judge(bob).exists()


def test_more_than_a_hundred_are_not_counted_one_by_one(
    decision: Decision, alice: User, bob: User, browser: Client
) -> None:
    rest = {"session": decision.session, "proposed_by": alice, "state": DecisionState.PROPOSED}
    Decision.objects.bulk_create([Decision(number=n, **rest) for n in range(1000, 1120)])
    assert count_for(bob) == MOST + 1
    assert '<span class="count" title="more than 100 to look at">100+</span>' in html_of(browser.get("/for-me"))
    Decision.objects.filter(number__gte=1003).delete()
    assert count_for(bob) == 4


def test_only_who_may_judge_is_asked(decision: Decision, alice: User) -> None:
    vera = User.objects.create_user("vera", password="correct horse battery", role="viewer")
    member_add(decision.session, user=vera, added_by=alice, role="viewer")
    assert not to_judge(vera).exists()
    assert count_for(vera) == 0
    root = User.objects.create_user("root", password="correct horse battery", is_staff=True)
    assert count_for(root) == to_judge(root).count() == 1
    assert not to_judge(alice).exists()


def test_the_proposer_is_told_once(decision: Decision, alice: User, bob: User, client: Client) -> None:
    say(decision, bob, Word.REJECTED, "not in December")
    client.force_login(alice)
    assert count_for(alice) == 1
    told = html_of(client.get("/for-me"))
    assert "not in December" in told
    assert "rejected" in told
    assert count_for(alice) == 0
    assert said_of_mine(alice).count() == 1


def test_each_version_is_kept_with_its_words_and_what_changed_is_shown(
    decision: Decision, alice: User, bob: User, browser: Client
) -> None:
    say(decision, bob, Word.REJECTED, "profile first")
    change(decision, alice, "The profile was read: half of it is NCCL.")
    shown = html_of(browser.get(page(decision, "/versions")))
    for text in ("version 1, rejected by bob", "The ladder stops at granted.", "The profile was read"):
        assert text in shown
    first = html_of(browser.get(page(decision, "/versions?from=1&to=1")))
    assert "The profile was read" not in first
    assert "profile first" in first


def test_changes_wanted_leave_it_proposed_and_are_no_approval(decision: Decision, bob: User, browser: Client) -> None:
    with pytest.raises(DecisionError, match="Say why not"):
        say(decision, bob, Word.CHANGES_WANTED, " ")
    browser.post(page(decision, "/judge"), {"approves": "changes", "reason": "say when"})
    decision.refresh_from_db()
    assert decision.state == DecisionState.PROPOSED
    assert "0 of 1 needed" in html_of(browser.get(page(decision)))


def test_a_word_is_taken_back_while_it_is_proposed(decision: Decision, bob: User, browser: Client) -> None:
    with pytest.raises(DecisionError, match="said nothing"):
        say(decision, bob, Word.WITHDRAWN, "")
    say(decision, bob, Word.CHANGES_WANTED)
    assert "Take my word back" in html_of(browser.get(page(decision)))
    browser.post(page(decision, "/judge"), {"approves": "back"})
    assert to_judge(bob).exists()
    assert "Take my word back" not in html_of(browser.get(page(decision)))


@pytest.mark.parametrize("anchor", ["decision:1", "option:gpudirect_clique"])
def test_an_open_dispute_is_approved_only_by_who_says_that_they_know(
    decision: Decision, bob: User, browser: Client, anchor: str
) -> None:
    session = decision.session
    comment_add(session, author=bob, text="7 GB/s is x8", stance="dispute", anchor=anchor)
    shown = html_of(browser.get(page(decision)))
    assert "1 dispute is open on it" in shown
    refused = browser.post(page(decision, "/judge"), {"approves": "yes", "reason": "go on"})
    assert "1 dispute is open" in html_of(refused)
    assert "go on</textarea>" in html_of(refused)
    browser.post(page(decision, "/judge"), {"approves": "yes", "despite": "on"})
    decision.refresh_from_db()
    assert decision.state == DecisionState.APPROVED
    assert decision.approvals.get().disputes == 1
    event = session.events.first()
    assert event is not None
    assert event.data["disputes"] == 1


def test_a_dispute_of_another_option_does_not_hold_it_up(decision: Decision, bob: User) -> None:
    comment_add(decision.session, author=bob, text="no", stance="dispute", anchor="option:cpu_affinity")
    say(decision, bob, Word.APPROVED)
    assert decision.state == DecisionState.APPROVED


def test_a_reason_on_an_old_page_is_kept_and_who_changed_it_is_said(
    decision: Decision, alice: User, browser: Client
) -> None:
    decision_withdraw(decision, user=alice)
    word = {"approves": "no", "reason": "the window is not ours", "seen": decision.content_sha256}
    answer = browser.post(page(decision, "/judge"), word)
    assert answer.status_code == 422
    assert "alice took it back just now to change it." in html_of(answer)
    assert "the window is not ours</textarea>" in html_of(answer)
    assert not decision.approvals.exists()


def test_what_speaks_against_haste_stands_beside_the_vote(decision: Decision, browser: Client) -> None:
    shown = html_of(browser.get(page(decision)))
    vote = shown.index(">Approve</button>")
    for text in ("no profile was read", "The goal is not reachable", "are unexplained", "gates are open: fabric"):
        assert 0 < shown.index(text) < vote
    assert shown.index("What changes") < shown.index("Evidence it rests on") < vote


def test_a_measurement_is_asked_for_until_it_came(decision: Decision, alice: User, browser: Client) -> None:
    session = decision.session
    diagnosis = f"/sessions/{session.pk}/diagnosis"
    assert "Ask alice for this" in html_of(browser.get(diagnosis))
    text = "@alice please profile it first"
    typed = {"anchor": "test:engine_profile", "text": text, "back": diagnosis}
    browser.post(f"/sessions/{session.pk}/comment", typed)
    assert [one.test for one in asked_of(alice)] == ["engine_profile"]
    (thread,) = [t for t in threads_of(session) if t.first.anchor.startswith("test:")]
    comment_add(session, author=alice, text="done", stance="resolve", reply_to=thread.first)
    assert asked_of(alice) == []


def test_the_export_holds_who_said_what_and_what_is_disputed(decision: Decision, alice: User, bob: User) -> None:
    session = decision.session
    dispute = comment_add(session, author=bob, text="alice read x16", stance="dispute", anchor="decision:1")
    comment_add(session, author=alice, text="it is x8", reply_to=dispute)
    say(decision, bob, Word.REJECTED, "profile first, alice")
    raw = as_markdown(decision)
    for text in ("Proposed by: alice", "Rejected by: bob", "profile first, alice", "it is x8"):
        assert text in raw
    hidden = as_markdown(decision, lambda text: text)
    assert "alice" not in hidden
    assert "bob" not in hidden
    for text in ("Proposed by: person A", "Rejected by: person B", "profile first, person A"):
        assert text in hidden
    assert "person B" in hidden.partition("## Open disputes")[2]


def test_the_step_is_done_when_somebody_else_agreed(decision: Decision, bob: User) -> None:
    session = decision.session
    assert "decide" not in progress_of([session])[session.pk].done
    say(decision, bob, Word.APPROVED)
    session = DiagnosisSession.objects.get(pk=session.pk)
    assert "decide" in progress_of([session])[session.pk].done


def test_taking_it_back_leads_to_the_editor(decision: Decision, alice: User, client: Client) -> None:
    client.force_login(alice)
    answer = client.post(page(decision, "/move"), {"do": "withdraw"})
    assert answer["Location"].endswith("/decide?draft=1#reason")


def test_the_log_says_what_was_said_and_leads_there(decision: Decision, bob: User, browser: Client) -> None:
    comment_add(decision.session, author=bob, text="7 GB/s is x8", stance="dispute", anchor="decision:1")
    log = html_of(browser.get(f"/sessions/{decision.session_id}/log"))
    assert "disputes: “7 GB/s is x8”" in log
    assert f'href="{page(decision)}"' in log


def test_a_gate_can_be_disputed(decision: Decision, browser: Client) -> None:
    session = decision.session
    typed = {"anchor": "gate:pcie-granted", "stance": "dispute", "text": "it is granted"}
    browser.post(f"/sessions/{session.pk}/comment", typed)
    shown = html_of(browser.get(f"/sessions/{session.pk}/discussion"))
    assert "gate “granted” over PCIe" in shown
    assert "#pcie-granted" in shown


def test_the_pin_leads_to_the_lines_that_were_read(decision: Decision, browser: Client) -> None:
    shown = html_of(browser.get(page(decision)))
    assert f"{decision.pins[0]['name']}?line=" in shown


def test_a_reason_may_be_given_for_what_was_passed_over(decision: Decision, alice: User, client: Client) -> None:
    client.force_login(alice)
    client.post(page(decision, "/move"), {"do": "withdraw"})
    typed = {
        "chosen": ["gpudirect_clique"],
        "reason": "It stops at granted.",
        "passed_over": "The profile is for Monday.",
        "version": "0",
    }
    client.post(f"/sessions/{decision.session_id}/decide?draft=1", typed)
    shown = html_of(client.get(page(decision)))
    assert "Recommended, and not chosen" in shown
    assert "The profile is for Monday." in shown
    decision.refresh_from_db()
    assert "The profile is for Monday." in as_markdown(decision)


def test_the_search_finds_what_was_said_and_shows_where_it_stands(
    decision: Decision, bob: User, browser: Client
) -> None:
    comment_add(decision.session, author=bob, text="Wilhelmine swapped it", stance="dispute")
    say(decision, bob, Word.REJECTED, "Wilhelmine has no window")
    digest_refresh(decision.session)
    found = html_of(browser.get("/search?q=wilhelmine"))
    assert "Wilhelmine has no window" in found
    assert "Wilhelmine swapped it" in found
    assert found.count('<span class="pill') == 2
