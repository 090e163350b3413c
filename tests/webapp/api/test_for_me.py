"""What waits for a person, what was said to them, what they are told of, and a record's versions, by a
program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.webapp.api.conftest import Program
from webapp.accounts.models import Role, User
from webapp.handoff.models import Answer, Link
from webapp.notices.choosing import chosen_by
from webapp.notices.kinds import DEFAULTS
from webapp.review.models import Approval, Mention
from webapp.review.threads import comment_add
from webapp.triage import intake
from webapp.triage.diagnoses import session_diagnosis
from webapp.triage.models import DiagnosisSession
from webapp.triage.samples import open_sample
from webapp.triage.sessions import member_add

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(alice: User, bob: User) -> DiagnosisSession:
    made = open_sample("kpro6@host", owner=alice)
    member_add(made, user=bob, added_by=alice, role=Role.REVIEWER)
    return made


@pytest.fixture
def hers(program: Callable[..., Program], alice: User) -> Program:
    return program(alice)


@pytest.fixture
def his(program: Callable[..., Program], bob: User) -> Program:
    return program(bob)


@pytest.fixture
def record(session: DiagnosisSession, hers: Program) -> str:
    """The address of what alice proposes."""
    at = f"/sessions/{session.pk}/decisions"
    sent = {"chosen": ["gpudirect_clique"], "reason": "The ladder stops at granted."}
    number = hers("POST", at, sent).json()["number"]
    assert hers("POST", f"{at}/{number}/propose").json()["state"] == "proposed"
    return f"{at}/{number}"


def wish(his: Program, record: str) -> None:
    sent = {"approves": False, "changes_wanted": True, "reason": "Say what it costs."}
    assert his("POST", f"{record}/judge", sent).status_code == 200


def proposed_again(hers: Program, record: str) -> None:
    hers("POST", f"{record}/withdraw")
    sent = {"chosen": ["gpudirect_clique"], "reason": "It costs one restart."}
    assert hers("PATCH", record, sent, If_Match="*").status_code == 200
    hers("POST", f"{record}/propose")


def test_each_version_has_its_words_and_what_changed(record: str, hers: Program, his: Program) -> None:
    wish(his, record)
    proposed_again(hers, record)
    his("POST", f"{record}/judge", {"approves": True})
    first, second = hers("GET", f"{record}/versions").json()["items"]
    assert [word["word"] for word in first["words"]] == ["changes_wanted"]
    assert [(w["who"], w["word"]) for w in second["words"]] == [("bob", "approved")]
    page = hers("GET", f"{record}/versions?limit=1").json()
    assert page["items"] == [first]
    rest = hers("GET", f"{record}/versions?cursor={page['next']}").json()
    assert rest == {"items": [second], "next": None}
    whole = hers("GET", f"{record}/versions/2").json()
    assert whole["content"]["reason"] == "It costs one restart."
    assert (whole["since"], [one["title"] for one in whole["changed"]]) == (1, ["Why"])
    assert whole["changed"][0]["before"] == "The ladder stops at granted."
    assert hers("GET", f"{record}/versions/2?since=2").json()["changed"] == []
    assert hers("GET", f"{record}/versions/1").json()["changed"] == []
    for path in ("versions/3", "versions/2?since=3", "versions/0"):
        assert hers("GET", f"{record}/{path}").status_code == 404


def test_what_was_never_proposed_has_no_versions(session: DiagnosisSession, hers: Program) -> None:
    at = f"/sessions/{session.pk}/decisions"
    number = hers("POST", at, {"chosen": ["gpudirect_clique"], "reason": "x"}).json()["number"]
    assert hers("GET", f"{at}/{number}/versions").json() == {"items": [], "next": None}


def test_a_proposal_waits_until_it_is_judged_and_again_when_it_changed(
    session: DiagnosisSession, record: str, hers: Program, his: Program
) -> None:
    (waits,) = his("GET", "/for-me").json()["to_judge"]
    assert (waits["session"], waits["proposed_by"]) == (str(session.pk), "alice")
    assert (waits["my_word"], waits["content_changed"]) == (None, False)
    assert hers("GET", "/for-me").json()["to_judge"] == []
    wish(his, record)
    assert his("GET", "/for-me").json()["to_judge"] == []
    proposed_again(hers, record)
    (waits,) = his("GET", "/for-me").json()["to_judge"]
    assert (waits["my_word"], waits["content_changed"]) == ("changes_wanted", True)


def test_a_word_is_taken_back_by_who_said_it(record: str, hers: Program, his: Program) -> None:
    taken_back = {"approves": False, "withdrawn": True}
    assert his("POST", f"{record}/judge", taken_back).status_code == 409
    wish(his, record)
    assert his("POST", f"{record}/judge", taken_back).json()["counting"] == []
    (version,) = hers("GET", f"{record}/versions").json()["items"]
    assert [word["word"] for word in version["words"]] == ["changes_wanted", "withdrawn"]


def test_an_answer_by_a_link_waits_for_an_operator(
    session: DiagnosisSession, alice: User, hers: Program, his: Program
) -> None:
    link, _ = Link.make(session, made_by=alice, person="Rolf", purpose="", hours=1, phases=[])
    taken = intake.take_text(session, b"$ uname -r\n6.8.12-9-pve\n", user=alice)
    Answer.objects.create(link=link, evidence=taken.evidence, understood=1)
    Link.objects.filter(pk=link.pk).update(received_at=taken.evidence.created_at)
    (waits,) = hers("GET", "/for-me").json()["to_accept"]
    assert (waits["link"], waits["person"]) == (str(link.pk), "Rolf")
    assert his("GET", "/for-me").json()["to_accept"] == []
    hers("POST", f"/sessions/{session.pk}/links/{link.pk}/accept")
    assert hers("GET", "/for-me").json()["to_accept"] == []


def test_a_measurement_is_asked_for_until_the_thread_is_resolved(
    session: DiagnosisSession, alice: User, his: Program
) -> None:
    test = session_diagnosis(session).next_tests[0].id
    first = comment_add(session, author=alice, text="@bob please", anchor=f"test:{test}")
    (asked,) = his("GET", "/for-me").json()["asked"]
    assert (asked["test"], asked["comment"]["id"]) == (test, first.pk)
    comment_add(session, author=alice, text="Done.", reply_to=first, stance="resolve")
    assert his("GET", "/for-me").json()["asked"] == []


def test_reading_what_was_said_is_not_seeing_it(
    session: DiagnosisSession, alice: User, bob: User, record: str, hers: Program, his: Program
) -> None:
    wish(his, record)
    comment_add(session, author=bob, text="@alice look", anchor="")
    for _ in range(2):
        (word,) = hers("GET", "/words").json()["items"]
        (mention,) = hers("GET", "/mentions").json()["items"]
        assert (word["who"], word["word"]) == ("bob", "changes_wanted")
        assert word["seen_at"] is mention["seen_at"] is None
    assert his("GET", "/words").json()["items"] == []
    his("POST", "/for-me/seen")
    assert Mention.objects.get().seen_at is Approval.objects.get().seen_at is None
    assert hers("POST", "/for-me/seen").status_code == 204
    assert hers("GET", "/words").json()["items"][0]["seen_at"]
    assert hers("GET", "/mentions").json()["items"][0]["seen_at"]


def test_what_a_person_is_told_of_is_chosen_anew(alice: User, hers: Program, settings: Any) -> None:
    def chosen() -> list[str]:
        kinds = hers("GET", "/notices").json()["kinds"]
        return sorted(one["id"] for one in kinds if one["chosen"])

    assert chosen() == DEFAULTS
    answer = hers("PUT", "/notices", {"kinds": ["run_finished"]})
    assert [one["id"] for one in answer.json()["kinds"] if one["chosen"]] == ["run_finished"]
    assert chosen() == chosen_by(alice) == ["run_finished"]
    refused = hers("PUT", "/notices", {"kinds": ["everything"]})
    assert refused.status_code == 422
    assert "run_finished" in refused.json()["detail"]
    assert hers("PUT", "/notices", {"kinds": []}).status_code == 200
    assert chosen() == []
    assert hers("GET", "/notices").json()["by_mail"] is False
    settings.MAIL_ON, alice.email = True, "alice@example.org"
    alice.save()
    assert hers("GET", "/notices").json()["by_mail"] is True
