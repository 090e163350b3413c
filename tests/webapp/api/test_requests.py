"""What holds for every operation: problems, pages, keys of repeated requests, versions."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from tests.webapp.api.conftest import Program
from webapp.accounts.models import Role, User
from webapp.api.models import Remembered
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, Event, Evidence
from webapp.records.sessions import member_add, quorum_set, session_open, session_save
from webapp.review.models import Comment
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def ask(program: Callable[..., Program], alice: User) -> Program:
    return program(alice)


@pytest.fixture
def at(session_of_alice: DiagnosisSession) -> str:
    return f"/sessions/{session_of_alice.pk}"


# --- problems -----------------------------------------------------------------------------------------


def problem_of(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert found["status"] == status
    assert found["type"] == "about:blank"
    assert found["title"]
    assert found["detail"].strip()
    return found


def test_every_refusal_is_a_problem(ask: Program, at: str) -> None:
    assert problem_of(ask("GET", "/nowhere"), 404)
    assert problem_of(ask("GET", "/sessions/not-an-id"), 404)
    assert problem_of(ask("DELETE", "/sessions"), 405)
    assert problem_of(ask("GET", "/me\0"), 404)
    assert problem_of(ask("PATCH", at, {"title": "x"}), 428)
    found = problem_of(ask("POST", "/sessions", {"title": 7, "colour": "red"}), 422)
    assert {"body.sent.title", "body.sent.colour"} == {one["where"] for one in found["errors"]}


def test_another_method_is_told_which_there_are(ask: Program) -> None:
    assert set(ask("PUT", "/sessions").headers["Allow"].split(", ")) == {"GET", "POST"}


def test_an_error_of_ours_is_a_problem_and_tells_nothing_of_it(
    ask: Program, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret of ours")

    monkeypatch.setattr("webapp.api.routes.reasoning.session_diagnosis", broken)
    found = problem_of(ask("GET", f"{at}/diagnosis"), 500)
    assert "secret" not in json.dumps(found)


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"title": NaN}', "application/json", 400),
        (b'{"title": "\\ud800"}', "application/json", 400),
        (b"[" * 100_000, "application/json", 413),
        (b"[" * 60_000, "application/json", 400),
        (b"title=x", "application/x-www-form-urlencoded", 400),
        (b'--a\r\nContent-Disposition: form-data; name="title"\r\n\r\nx\r\n--a--\r\n',
         "multipart/form-data; boundary=a", 415),
    ],
)  # fmt: skip
def test_what_is_no_json_is_told_to_be_none(ask: Program, body: bytes, media_type: str, status: int) -> None:
    asked: Any = {"authorization": f"Bearer {ask.token}"} if status != 413 else {}
    answer = Client().post("/api/v1/sessions", body, media_type, headers=asked)
    problem_of(answer, status)
    assert not DiagnosisSession.objects.exists()


def test_json_has_an_end(ask: Program, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    problem_of(ask("POST", "/sessions", {"title": "x" * 100}), 413)


def test_a_vmid_can_be_taken_back_and_nothing_else_is_null(ask: Program, at: str) -> None:
    ask("PATCH", at, {"vmid": 128, "own_words": "P2P"}, If_Match="*")
    changed = ask("PATCH", at, {"vmid": None, "own_words": None, "title": None}, If_Match="*").json()
    assert changed["vmid"] is None
    assert changed["own_words"] == "P2P"


def test_nul_is_left_out_of_texts(ask: Program) -> None:
    made = ask("POST", "/sessions", {"title": "a\0b"})
    assert made.json()["title"] == "ab"


def test_numbers_of_a_workload_have_an_end(ask: Program, at: str) -> None:
    for value in (10**30, -(10**30), 1e300):
        sent = {"workload": {"model": {"layers": value}}}
        problem_of(ask("PATCH", at, sent, If_Match="*"), 422)


# --- pages --------------------------------------------------------------------------------------------


def walk(ask: Program, path: str, meanwhile: Callable[[], object]) -> list[Any]:
    """Every row, page by page, while others are added."""
    found: list[Any] = []
    cursor = ""
    while True:
        page = ask("GET", f"{path}?limit=3&cursor={cursor}").json()
        found += page["items"]
        cursor = page["next"]
        if not cursor:
            return found
        meanwhile()


def test_pages_of_sessions_neither_repeat_nor_skip(ask: Program, alice: User) -> None:
    own = [session_open(owner=alice, title=f"s{i}") for i in range(10)]
    found = walk(ask, "/sessions", lambda: session_open(owner=alice, title="new"))
    assert [one["id"] for one in found] == [str(one.pk) for one in reversed(own)]


def test_sessions_of_one_moment_are_each_given_once(ask: Program, alice: User) -> None:
    own = {str(session_open(owner=alice, title="s").pk) for _ in range(7)}
    DiagnosisSession.objects.update(created_at=timezone.now())
    found = [one["id"] for one in walk(ask, "/sessions", lambda: None)]
    assert len(found) == 7
    assert set(found) == own


def test_pages_of_the_log_go_on_with_what_is_added(ask: Program, at: str, session_of_alice: DiagnosisSession) -> None:
    for i in range(8):
        Event.record(session_of_alice, f"kind_{i}")
    found = walk(ask, f"{at}/events", lambda: None)
    assert [one["number"] for one in found] == list(range(1, 10))


def test_pages_of_comments_neither_repeat_nor_skip(
    ask: Program, at: str, session_of_alice: DiagnosisSession, alice: User
) -> None:
    def say() -> Comment:
        return Comment.objects.create(session=session_of_alice, text="x", author=alice)

    own = [say().pk for _ in range(7)]
    found = [one["id"] for one in walk(ask, f"{at}/comments", lambda: None)]
    assert found == own


# Nothing of the kind; an object; nulls; a sign; too long; cut off.
NO_CURSORS = ("x", "e30", "W251bGwsbnVsbF0", "%F0%9F%92%A9", "A" * 299, "WyJ4Iiwxxx")
A_NUMBER, A_TIME = "WzEsMl0", "WyIyMDI2LTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwgMV0"  # and a key


@pytest.mark.parametrize("path", ["/sessions", "{}/events", "{}/links", "{}/runs"])
def test_what_is_no_cursor_of_a_list_is_told_to_be_none(ask: Program, at: str, path: str) -> None:
    other = A_TIME if path in {"{}/events", "{}/runs"} else A_NUMBER
    for cursor in (*NO_CURSORS, other):
        problem_of(ask("GET", f"{path.format(at)}?cursor={cursor}"), 422)
    assert ask("GET", f"{at}/events?cursor={A_NUMBER}").status_code == 200


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_is_out_of_reach_here_is_no_cursor(ask: Program, at: str, alice: User, time: str) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps([time, at[10:]]).encode()).decode()
    problem_of(ask("GET", f"/sessions?cursor={cursor}"), 422)
    browser = Client()
    browser.force_login(alice)
    for page, key in (("/", at[10:]), ("/decisions", "1")):
        assert browser.get(page, {"before": f"{time}_{key}"}).status_code == 200


# --- the same request again ---------------------------------------------------------------------------


def test_a_repeated_key_makes_nothing_twice(ask: Program) -> None:
    first = ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1")
    again = ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1")
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert first.headers["ETag"] == again.headers["ETag"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert DiagnosisSession.objects.count() == 1
    assert ask("POST", "/sessions", {"title": "once"}).status_code == 201
    assert DiagnosisSession.objects.count() == 2


def test_a_key_is_for_one_request(ask: Program, at: str) -> None:
    ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1")
    problem_of(ask("POST", "/sessions", {"title": "other"}, Idempotency_Key="k1"), 422)
    problem_of(ask("POST", f"{at}/comments", {"text": "x"}, Idempotency_Key="k1"), 422)
    problem_of(ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="with space"), 422)


def test_keys_of_two_tokens_are_two_keys(ask: Program, program: Callable[..., Program], bob: User) -> None:
    ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1")
    other = program(bob)("POST", "/sessions", {"title": "mine"}, Idempotency_Key="k1")
    assert other.json()["title"] == "mine"


def test_a_refused_request_leaves_its_key_free(ask: Program) -> None:
    problem_of(ask("POST", "/sessions", {"title": ""}, Idempotency_Key="k1"), 422)
    assert ask("POST", "/sessions", {"title": "now"}, Idempotency_Key="k1").status_code == 201


def test_a_key_is_kept_for_a_day(ask: Program) -> None:
    ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1")
    Remembered.objects.update(made_at=timezone.now() - timedelta(hours=25))
    assert ask("POST", "/sessions", {"title": "new"}, Idempotency_Key="k1").status_code == 201
    assert Remembered.objects.count() == 1


def test_a_request_that_is_being_answered_is_not_answered_twice(ask: Program) -> None:
    ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1")
    Remembered.objects.update(status=None)
    problem_of(ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1"), 409)
    Remembered.objects.update(made_at=timezone.now() - timedelta(minutes=11))
    assert ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1").status_code == 201


def test_an_upload_is_the_same_whatever_its_boundary(ask: Program, at: str) -> None:
    def send(boundary: str, content: str) -> Any:
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
            f"{content}\r\n--{boundary}--\r\n"
        )
        headers: Any = {"authorization": f"Bearer {ask.token}", "idempotency-key": "u1"}
        kind = f"multipart/form-data; boundary={boundary}"
        return Client().post(f"/api/v1{at}/evidence/files", body.encode(), kind, headers=headers)

    assert send("one", "$ uname -r\n6.8.12\n").status_code == 201
    assert send("two", "$ uname -r\n6.8.12\n").headers["Idempotency-Replayed"] == "true"
    assert send("two", "$ uname -r\n6.9.0\n").status_code == 422
    assert Evidence.objects.count() == 1


def test_the_address_of_a_link_is_told_once_and_kept_nowhere(ask: Program, at: str) -> None:
    first = ask("POST", f"{at}/links", {}, Idempotency_Key="l1").json()
    again = ask("POST", f"{at}/links", {}, Idempotency_Key="l1").json()
    token = first["address"].rpartition("/")[2]
    assert again == {**first, "address": None}
    assert token.encode() not in bytes(Remembered.objects.get().body)
    assert token not in html_of(ask("GET", f"{at}/links"))


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_makes_it(ask: Program) -> None:
    def send(_: int) -> int:
        try:
            answer = ask("POST", "/sessions", {"title": "once"}, Idempotency_Key="k1")
            return int(answer.status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(send, range(8)))
    assert found <= {201, 409}
    assert DiagnosisSession.objects.count() == 1


# --- versions -----------------------------------------------------------------------------------------


def test_a_change_names_what_it_changes(ask: Program, at: str, session_of_alice: DiagnosisSession, alice: User) -> None:
    tag = ask("GET", at).headers["ETag"]
    changed = ask("PATCH", at, {"own_words": "P2P"}, If_Match=tag)
    assert changed.json()["own_words"] == "P2P"
    assert changed.headers["ETag"] != tag
    late = ask("PATCH", at, {"own_words": "late"}, If_Match=tag)
    problem_of(late, 412)
    current = f'"{changed.json()["version"]}"'
    assert late.headers["ETag"] == current
    assert ask("PATCH", at, {"own_words": "P2P"}, If_Match=current).status_code == 200
    changed = ask("GET", at)
    session_of_alice.refresh_from_db()
    assert session_of_alice.own_words == "P2P"
    assert ask("PATCH", at, {"vmid": 128}, If_Match=f'"x", {changed.headers["ETag"]}').status_code == 200


def test_an_etag_changes_with_all_that_is_said_and_a_change_goes_by_what_it_overwrites(
    ask: Program, at: str, session_of_alice: DiagnosisSession, alice: User, bob: User,
    program: Callable[..., Program],
) -> None:  # fmt: skip
    tag = ask("GET", at).headers["ETag"]
    quorum_set(session_of_alice, quorum=3, user=alice)
    anew = ask("GET", at, If_None_Match=tag)
    assert (anew.status_code, anew.json()["quorum"]) == (200, 3)
    member_add(session_of_alice, user=bob, added_by=alice, role=Role.VIEWER)
    as_bob = program(bob)("GET", at, If_None_Match=anew.headers["ETag"])
    assert (as_bob.status_code, as_bob.json()["my_role"]) == (200, "viewer")
    assert ask("PATCH", at, {"own_words": "P2P"}, If_Match=tag).status_code == 200
    problem_of(ask("PATCH", at, {"own_words": "late"}, If_Match=tag), 412)


def test_a_page_and_a_program_do_not_overwrite_each_other(
    ask: Program, at: str, session_of_alice: DiagnosisSession, alice: User
) -> None:
    tag = ask("GET", at).headers["ETag"]
    values = {"symptom": "typed"}
    session_save(session_of_alice, user=alice, version=0, what="symptom", values=values)
    problem_of(ask("PATCH", at, {"symptom": "sent"}, If_Match=tag), 412)


def test_the_diagnosis_is_that_of_the_command_and_is_sent_when_it_changed(ask: Program, alice: User) -> None:
    session = open_sample("kpro6@after", owner=alice)
    path = f"/sessions/{session.pk}/diagnosis"
    first = ask("GET", path)
    assert first.json()["schema"] == "peerpath.diagnosis/1"
    assert first.json()["headline"] == session_diagnosis(session).headline
    same = ask("GET", path, If_None_Match=first.headers["ETag"])
    assert same.status_code == 304
    assert not same.content
    assert same.headers["ETag"] == first.headers["ETag"]
    ask("PATCH", f"/sessions/{session.pk}", {"vmid": 128}, If_Match="*")
    ask("POST", f"/sessions/{session.pk}/evidence", {"text": "$ uname -r\n6.1.0-other\n"})
    assert ask("GET", path, If_None_Match=first.headers["ETag"]).status_code == 200
