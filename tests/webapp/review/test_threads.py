"""Threads: who is told, what stays open, and what a stranger cannot say."""

from __future__ import annotations

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import member_add
from webapp.review.models import Comment
from webapp.review.threads import Thread, comment_add, is_named, threads_of
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
GUESS = "hypothesis:compute_bound"


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="correct horse battery")


@pytest.fixture
def bob() -> User:
    return User.objects.create_user("Bob Ray", password="correct horse battery")


@pytest.fixture
def session(alice: User, bob: User) -> DiagnosisSession:
    made = open_sample("kpro6@guest", owner=alice)
    member_add(made, user=bob, added_by=alice, role="reviewer")
    return made


@pytest.fixture
def browser(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


def say(session: DiagnosisSession, browser: Client, **typed: str) -> str:
    back = f"/sessions/{session.pk}/diagnosis"
    page = browser.post(f"/sessions/{session.pk}/comment", {"back": back, **typed}, follow=True)
    return html_of(page)


@pytest.mark.parametrize(
    ("anchor", "back", "spot"),
    [
        (GUESS, "diagnosis", "hypothesis-compute_bound"),
        ("gate:pcie-fabric", "diagnosis", "pcie-fabric"),
        ("line:paste@0123456789ab:7", "evidence/paste@0123456789ab?line=7", "L7"),
    ],
)
def test_the_form_alone_leads_back_to_what_it_is_about(
    session: DiagnosisSession, browser: Client, anchor: str, back: str, spot: str
) -> None:
    address = f"/sessions/{session.pk}/discussion"
    form = html_of(browser.get(address, {"about": anchor}, headers={"HX-Request": "true"}))
    assert "<html" not in form
    assert f'name="back" value="/sessions/{session.pk}/{back}"' in form
    assert f'name="spot" value="{spot}"' in form


def test_a_dispute_stands_on_the_diagnosis_until_it_is_resolved(session: DiagnosisSession, browser: Client) -> None:
    page = say(session, browser, anchor=GUESS, stance="dispute", text="330 W is normal")
    assert 'role="note"' in page
    assert "330 W is normal" in page
    (thread,) = threads_of(session)
    first = str(thread.first.pk)
    page = say(session, browser, reply_to=first, stance="resolve", text="agreed in the call")
    assert 'role="note"' not in page
    page = say(session, browser, reply_to=first, stance="reopen", text="not quite")
    assert 'role="note"' in page


@pytest.mark.parametrize(
    "typed",
    [
        {"text": "  "},
        {"text": "x" * 10_001},
        {"text": "x", "stance": "resolve"},
        {"text": "x", "stance": "shout"},
        {"text": "x", "anchor": "javascript:alert(1)"},
        {"text": "x", "anchor": "option:" + "y" * 100},
    ],
)
def test_what_cannot_be_said_says_why_and_changes_nothing(
    session: DiagnosisSession, browser: Client, typed: dict[str, str]
) -> None:
    assert 'class="error"' in say(session, browser, **typed)
    assert not session.comments.exists()


def test_an_answer_belongs_to_a_thread_of_the_same_session(
    session: DiagnosisSession, browser: Client, alice: User
) -> None:
    elsewhere = open_sample("kpro6@first", owner=alice)
    other = comment_add(elsewhere, author=alice, text="mine")
    address = f"/sessions/{session.pk}/comment"
    assert browser.post(address, {"reply_to": other.pk, "text": "hi"}).status_code == 404
    assert browser.post(address, {"reply_to": "x", "text": "hi"}).status_code == 404


def test_who_is_named_is_told_once_and_only_members_are(
    session: DiagnosisSession, browser: Client, alice: User, bob: User
) -> None:
    User.objects.create_user("mallory")
    comment_add(session, author=alice, text="@bob ray, @mallory and @alice: look")
    page = html_of(browser.get("/"))
    assert '<span class="count"' in page
    assert "look" in html_of(browser.get("/for-me"))
    assert '<span class="count"' not in html_of(browser.get("/"))
    assert [m.user.username for m in Comment.objects.get().mentions.all()] == ["Bob Ray"]


def test_a_name_is_not_the_beginning_of_a_longer_one() -> None:
    assert is_named("bob", "see @bob.")
    assert is_named("bob", "(@BOB)")
    assert not is_named("bob", "@bobby")
    assert not is_named("bob", "mail to x@bob")
    assert not is_named("b.b", "@bab")


@given(st.lists(st.sampled_from(["", "resolve", "reopen"])))
def test_the_last_word_decides(stances: list[str]) -> None:
    thread = Thread(Comment(stance="dispute"), [Comment(stance=s) for s in stances])
    telling = [s for s in stances if s]
    assert thread.resolved == (telling[-1:] == ["resolve"])
    assert thread.disputes != thread.resolved


def test_a_comment_on_everything_leads_back_to_it(session: DiagnosisSession, browser: Client) -> None:
    name = session.evidence.all()[0].name
    anchors = ["option:engine_profile", "finding:x", f"line:{name}:3", "run:7", "decision:1", ""]
    for anchor in anchors:
        say(session, browser, anchor=anchor, text=f"about {anchor}")
    page = html_of(browser.get(f"/sessions/{session.pk}/discussion"))
    assert f"/evidence/{name}?line=3#L3" in page
    assert "/decide#option-engine_profile" in page
    assert len(threads_of(session)) == len(anchors)
