"""What people send to harm: each of these once worked, or would if a line were lost."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape, strip_tags

from agents.facts import View
from agents.facts.platform import PYTHON_WITH_TORCH
from agents.raw_reading import Item
from agents.supervision import wrap_payload
from tests.pages import html_of
from webapp.accounts import throttle
from webapp.accounts.models import OneTimeLink, User
from webapp.config import environment
from webapp.config.security import LARGEST_ANONYMOUS_REQUEST_BYTES, LARGEST_REQUEST_BYTES
from webapp.pages.forms.workload import PointForm, WorkloadForm
from webapp.pages.templatetags.terms import with_terms
from webapp.records import blob_store, intake, redaction
from webapp.records.models import DiagnosisSession, Event, Evidence, PinnedHostKey, Run, Target
from webapp.records.recorded import create_readings
from webapp.records.sessions import member_add, session_open
from webapp.review.models import Decision
from webapp.runs import lifecycle
from worker.benchmark_job import BenchmarkJob

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A port that nobody has a reason to connect to."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(0.2)
        yield made


# --- reaching machines with the keys of the machine that runs Peerpath ----------------------------


def target_at(session: DiagnosisSession, user: User, port: int, **more: str) -> Target:
    where = {"role": "guest", "agent": "ssh", "host": "127.0.0.1", "user": "root", **more}
    return Target.objects.create(session=session, port=port, created_by=user, **where)


@pytest.mark.parametrize("jump", [False, True])
def test_a_member_cannot_make_peerpath_knock_on_doors(
    browser: Client, alice: User, bob: User, session_of_alice: DiagnosisSession, listener: socket.socket, jump: bool
) -> None:
    port = listener.getsockname()[1]
    more = {"jump": f"root@127.0.0.1:{port}"} if jump else {}
    target = target_at(session_of_alice, alice, port, **more)
    answer = browser.get(f"/sessions/{session_of_alice.pk}/targets/{target.pk}/key")
    assert "only an administrator may connect" in html_of(answer)
    with pytest.raises(TimeoutError):
        listener.accept()


@pytest.mark.parametrize("path", ["/etc/passwd", "/no/such/file"])
def test_a_member_cannot_ask_which_files_there_are(
    browser: Client, bob: User, session_of_alice: DiagnosisSession, path: str
) -> None:
    typed = {"host": "gpu", "port": "22", "user": "root", "identity_file": path}
    answer = browser.post(f"/sessions/{session_of_alice.pk}/targets/guest", typed)
    assert answer.status_code == 403
    assert "Store a key of yours first" in html_of(answer)
    assert not session_of_alice.targets.exists()


@pytest.mark.parametrize("path", ["~no-such-person/key", "x" * 300, "/" + "x/" * 190])
def test_a_key_file_that_cannot_be_is_told_in_place(
    browser: Client, session_of_alice: DiagnosisSession, path: str
) -> None:
    typed = {"host": "gpu", "port": "22", "user": "root", "identity_file": path}
    answer = browser.post(f"/sessions/{session_of_alice.pk}/targets/guest", typed)
    assert answer.status_code == 422
    assert "There is no such file" in html_of(answer)


def test_a_member_cannot_hide_that_a_key_changed(
    browser: Client, alice: User, bob: User, session_of_alice: DiagnosisSession
) -> None:
    target = target_at(session_of_alice, alice, 22)
    PinnedHostKey.objects.create(session=session_of_alice, host=target.host, port=22, key_line="k", accepted_by=alice)
    address = f"/sessions/{session_of_alice.pk}/targets/{target.pk}/key/forget"
    typed = {"host": target.host, "port": "22", "confirm": target.host}
    assert browser.post(address, typed).status_code == 403
    assert session_of_alice.host_keys.exists()
    User.objects.filter(pk=bob.pk).update(is_active=False)  # alone again: it is Alice's machine
    assert browser.post(address, {**typed, "port": "9" * 5000}).status_code == 302
    assert session_of_alice.host_keys.exists()
    assert browser.post(address, typed).status_code == 302
    assert not session_of_alice.host_keys.exists()


def test_a_member_runs_nothing_on_the_machine_that_an_administrator_added(
    browser: Client, alice: User, carol: User
) -> None:
    session = session_open(owner=carol, title="Carol's own")
    member_add(session, user=alice, added_by=carol)
    here = Target.objects.create(session=session, role="guest", agent="local", created_by=carol)
    for typed in ({}, {"benchmark": "bench.copy"}, {"nccl_log": "/etc/shadow"}):
        browser.post(f"/sessions/{session.pk}/targets/{here.pk}/run", typed)
    assert not session.runs.exists()


def test_a_paste_does_not_name_the_program_that_a_benchmark_runs(carol: User, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_open(owner=carol, title="x")
    target = target_at(session, carol, 22)
    monkeypatch.setattr("webapp.runs.queue.send_run", lambda run_id: True)
    probing = lifecycle.queue_probes(session, target, carol, ["guest.python_with_torch"])
    run = lifecycle.queue_benchmark(session, target, carol, "bench.copy")
    claim = lifecycle.Claim(run.pk, 1)
    taken = intake.take_text(session, b"/tmp/python3 2.3.0\n", user=carol)
    assert taken.understood[0].reader == PYTHON_WITH_TORCH.id
    assert "'python3' ./program" in sent(BenchmarkJob(run, claim))

    def answered(text: str) -> None:
        reading = PYTHON_WITH_TORCH.known(text)
        about = {"session": session, "run": probing, "reader": "x", "origin": "run"}
        evidence = Evidence.store(blob_store.store(text.encode()), **about)
        create_readings([(evidence, Item("x", "x", View.GUEST, (reading,)))])

    answered("/opt/conda/bin/python3.11 2.3.0")
    assert "'/opt/conda/bin/python3.11' ./program" in sent(BenchmarkJob(run, claim))
    answered("/sbin/reboot 2.3.0")
    assert "'python3' ./program" in sent(BenchmarkJob(run, claim))


def sent(job: BenchmarkJob) -> str:
    """What this run would have executed, without executing it."""
    return wrap_payload(b"", (), interpreter=job._interpreter(), timeout_s=1)


# --- signing in ------------------------------------------------------------------------------------


def test_a_name_written_in_other_ways_has_the_same_count(client: Client, alice: User) -> None:
    ways = ["alice", " alice", "alice  ", "ALICE", "ａｌｉｃｅ", "\talice", "\u2003alice"]
    answers = [client.post("/sign-in", {"username": w, "password": "guess"}) for w in ways]
    assert [a.status_code for a in answers] == [403] * 5 + [429] * 2


@pytest.mark.django_db(transaction=True)
def test_many_guesses_at_once_are_not_more_than_one_by_one() -> None:
    with ThreadPoolExecutor(12) as together:
        allowed = list(together.map(lambda _: throttle.may_try("alice", "192.0.2.1"), range(24)))
    assert allowed.count(True) == throttle.TRIES
    assert throttle.may_try("alice", "192.0.2.2")


def test_one_password_tried_at_many_names_is_slowed_too(client: Client) -> None:
    most = throttle.TRIES_OF_AN_ADDRESS
    tries = [{"username": f"name{n}", "password": "guess"} for n in range(most + 3)]
    answers = [client.post("/sign-in", each).status_code for each in tries]
    assert answers == [403] * most + [429] * 3
    elsewhere = client.post("/sign-in", tries[0], REMOTE_ADDR="192.0.2.2")
    assert elsewhere.status_code == 403


def test_a_blocked_sign_in_checks_no_password(client: Client, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = {"username": "alice", "password": "guess"}
    for _ in range(5):
        client.post("/sign-in", typed)
    checked: list[str] = []

    def check(self: User, raw: str) -> bool:
        checked.append(raw)
        return False

    monkeypatch.setattr(User, "check_password", check)
    assert client.post("/sign-in", typed).status_code == 429
    assert checked == []


def test_signing_in_changes_the_cookie_of_the_session(client: Client, alice: User) -> None:
    planted = client.session
    planted["x"] = "planted"
    planted.save()
    before = client.cookies["peerpath_session"].value
    client.post("/sign-in", {"username": "alice", "password": "alice-secret-1"})
    assert client.cookies["peerpath_session"].value != before


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(client: Client, alice: User) -> None:
    client.post("/sign-in", {"username": "alice", "password": "alice-secret-1"})
    for name in ("peerpath_session", "csrftoken"):
        assert client.cookies[name]["httponly"], name
        assert client.cookies[name]["samesite"] == "Lax"


@pytest.mark.parametrize("name", ["alice\u200b", "\u202ealice", "ａｌｉｃｅ", "Alice", "ali\x00ce", " ", "PeerPath"])
def test_nobody_takes_a_name_that_reads_like_another_ones(client: Client, alice: User, name: str) -> None:
    _, token = OneTimeLink.make(makes_admin=False)
    typed = {"username": name, "password": "correct horse battery"}
    assert client.post(f"/welcome/{token}", typed).status_code == 200
    assert User.objects.count() == 1
    assert OneTimeLink.find(token)


def test_a_new_name_signs_in_as_it_was_chosen(client: Client) -> None:
    _, token = OneTimeLink.make(makes_admin=False)
    typed = {"username": " Zoë  Ｂ ", "password": "correct horse battery"}
    client.post(f"/welcome/{token}", typed)
    assert User.objects.get().username == "Zoë B"
    assert Client().post("/sign-in", typed | {"username": "Zoë Ｂ"}).status_code == 302


def test_a_link_is_kept_by_no_cache_and_told_to_nobody(client: Client) -> None:
    _, token = OneTimeLink.make(makes_admin=False)
    page = client.get(f"/welcome/{token}")
    assert "no-store" in page.headers["Cache-Control"]
    assert page.headers["Referrer-Policy"] == "same-origin"


# --- how much may be sent ------------------------------------------------------------------------


class Unread(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise AssertionError("the body was read")


@pytest.mark.parametrize("path", ["/sign-in", "/sessions/read", "/no-such-page"])
def test_who_is_not_signed_in_sends_nothing_large(client: Client, path: str) -> None:
    answer = upload(client, path, LARGEST_ANONYMOUS_REQUEST_BYTES + 1)
    assert answer.status_code == 413
    assert "too large" in html_of(answer)


@pytest.mark.parametrize("length", [str(LARGEST_REQUEST_BYTES + 1), "9" * 5000, "-1", "x"])
def test_an_upload_is_limited_before_it_is_read(browser: Client, length: str) -> None:
    assert upload(browser, "/sessions/read", length).status_code == 413


def upload(client: Client, path: str, length: int | str) -> Any:
    sent: dict[str, Any] = {"CONTENT_LENGTH": str(length), "wsgi.input": Unread()}
    return client.generic("POST", path, content_type="multipart/form-data; boundary=x", **sent)


@pytest.mark.parametrize("value", ["9" * 400, "1e308", "9" * 5000, "1-" + "9" * 38])
def test_numbers_that_no_machine_has_are_told_in_place(value: str) -> None:
    numbers = {n for n in WorkloadForm.base_fields if n not in {"title", "symptom", "model__name"}}
    numbers.remove("parallelism__dp_attention")
    form = WorkloadForm({"title": "t"} | dict.fromkeys(numbers, value))
    assert numbers <= form.errors.keys()
    assert PointForm(dict.fromkeys(PointForm.base_fields, value)).errors.keys() == {*PointForm.base_fields}


@pytest.mark.parametrize("line", ["9" * 5000, "²", "-1", "0", "1,,x"])
def test_odd_line_numbers_break_no_page(
    browser: Client, alice: User, session_of_alice: DiagnosisSession, line: str
) -> None:
    name = intake.take_text(session_of_alice, b"$ uname -r\n6.8\n", user=alice).evidence.name
    answer = browser.get(f"/sessions/{session_of_alice.pk}/evidence/{name}", {"line": line})
    assert answer.status_code == 200


@pytest.mark.parametrize("version", ["9" * 5000, "²", "-1", "9" * 9])
def test_odd_versions_overwrite_nothing(browser: Client, session_of_alice: DiagnosisSession, version: str) -> None:
    typed = {"version": version, "own_words": "mine"}
    answer = browser.post(f"/sessions/{session_of_alice.pk}/hypothesis", typed)
    assert answer.status_code == 409


def test_one_endless_line_is_shown_in_part_and_says_so(
    browser: Client, alice: User, session_of_alice: DiagnosisSession
) -> None:
    raw = b"<b>" * 100_000
    name = intake.take_text(session_of_alice, raw, user=alice).evidence.name
    address = f"/sessions/{session_of_alice.pk}/evidence/{name}"
    page = browser.get(address)
    assert len(page.content) < 200_000
    assert "more in this line: download it to see all" in html_of(page)
    assert browser.get(address, {"download": "1"}).content == raw


def test_a_comment_is_no_place_for_a_log(browser: Client, session_of_alice: DiagnosisSession) -> None:
    browser.post(f"/sessions/{session_of_alice.pk}/comment", {"text": "x" * 10_001})
    assert not session_of_alice.comments.exists()


@pytest.mark.parametrize(("rows", "shown"), [(1, True), (3_000, False)])
def test_a_machine_that_prints_without_end_does_not_keep_the_pages_busy(
    browser: Client, alice: User, session_of_alice: DiagnosisSession, rows: int, shown: bool
) -> None:
    target = target_at(session_of_alice, alice, 22)
    run = Run.objects.create(
        session=session_of_alice, target=target, number=1, kind="benchmark", names=["bench.copy"],
        state="running", created_by=alice,
    )  # fmt: skip
    head = '{"schema": "peerpath.copy/1", "environment": {"device": "cpu", "torch": "2.13.0"}}'
    row = (
        '{"path": "same", "source": "0", "destination": "0", "size_bytes": 12288, "timing":'
        ' "device", "time_us": 0.9, "samples": 200}'
    )
    run.chunks.create(number=0, body="\n".join([head, *[row] * rows, ""]).encode())
    page = html_of(browser.get(f"/sessions/{session_of_alice.pk}/runs/{run.pk}"))
    assert ("Copy benchmark, so far" in page) is shown
    seen = page.partition("?seen=")[2].partition('"')[0]
    again = browser.get(
        f"/sessions/{session_of_alice.pk}/runs/{run.pk}", {"seen": seen}, headers={"hx-request": "true"}
    )
    assert again.status_code == 204


# --- what leaves -----------------------------------------------------------------------------------


@pytest.mark.parametrize("back", ["//evil.example/", "https://evil.example/", "/\\evil.example"])
@pytest.mark.parametrize("page", ["comment", "members"])
def test_no_form_leads_to_another_site(
    browser: Client, session_of_alice: DiagnosisSession, page: str, back: str
) -> None:
    typed = {"text": "hello", "username": "nobody", "back": back}
    answer = browser.post(f"/sessions/{session_of_alice.pk}/{page}", typed)
    assert answer.headers["Location"] == session_of_alice.get_absolute_url()


@pytest.mark.parametrize("query", ["", "?download=1", "?download=redacted"])
def test_hostile_names_stay_text_and_downloads_are_never_pages(
    browser: Client, alice: User, session_of_alice: DiagnosisSession, query: str
) -> None:
    hostile = '"><script>alert(1)</script>\r\nX-Evil: 1'
    bundle = (
        b"=aaaaaaaa= begin peerpath.collector/1 role=guest\n"
        b"=aaaaaaaa= probe guest.<script>\n| <script>alert(1)</script>\n"
        b"=aaaaaaaa= probe guest.virt_kind\n| <script>alert(1)</script>\n"
        b"=aaaaaaaa= done guest.virt_kind exit=0 ms=1 alternative=0 timed_out=no truncated=no\n"
    )
    intake.take_text(session_of_alice, bundle, user=alice, label=hostile, hint=hostile)
    stored = list(session_of_alice.evidence.all())
    assert {evidence.reader for evidence in stored} == {"bundle", "guest.virt_kind"}
    for evidence in stored:
        answer = browser.get(f"/sessions/{session_of_alice.pk}/evidence/{evidence.name}{query}")
        assert answer.status_code == 200
        if query:
            assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
            assert evidence.label not in answer.headers["Content-Disposition"]
        else:
            assert "<script>alert" not in html_of(answer)


@pytest.mark.parametrize("text", ["BARſ and all-reduceſ", "<b>P2P</b> & 'NS'", "&amp;P2P;"])
def test_words_with_their_meaning_stay_the_same_text(text: str) -> None:
    shown = with_terms(text)
    assert unescape(strip_tags(shown)) == unescape(strip_tags(escape(text)))
    assert "<b>" not in shown


def test_an_export_that_cannot_be_redacted_is_not_given_at_all(
    browser: Client, alice: User, session_of_alice: DiagnosisSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    Decision.objects.create(session=session_of_alice, number=1, title="secret title", proposed_by=alice)
    intake.take_text(session_of_alice, b"$ uname -r\n6.8\n", user=alice)

    def fails(*_: object) -> None:
        raise redaction.RedactionError("It could not be redacted.")

    monkeypatch.setattr(redaction, "session_tokens", fails)
    address = f"/sessions/{session_of_alice.pk}/decisions/1?format=md"
    answer = browser.get(address)
    assert answer.status_code == 503
    assert "secret title" not in html_of(answer)


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/nope", "/static/nope.css", "/api/v1/nope", "/api/v1/me", "/sessions/{}/report.md"]
)
def test_every_answer_is_guarded_and_is_one_persons(
    browser: Client, session_of_alice: DiagnosisSession, path: str
) -> None:
    answer = browser.get(path.format(session_of_alice.pk))
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "private" in answer.headers["Cache-Control"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"


# --- pages when something is wrong -----------------------------------------------------------------


def plain_page(answer: Any, status: int, words: str) -> None:
    page = html_of(answer)
    assert answer.status_code == status
    assert words in page
    assert '<a class="brand"' in page
    assert "style=" not in page
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_error_pages_are_plain_and_say_nothing_of_the_inside(
    browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for client in (Client(), browser):
        plain_page(client.get("/no/such/page"), 404, "nothing at this address")
    plain_page(browser.get("/people"), 403, "for administrators")
    plain_page(browser.get("/", headers={"host": "evil.example"}), 400, "could not be understood")

    def fails(*_: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr("webapp.pages.session.start.acting", fails)
    browser.raise_request_exception = False
    answer = browser.get("/")
    plain_page(answer, 500, "Peerpath itself failed")
    assert "a secret of the inside" not in html_of(answer)


# --- records ---------------------------------------------------------------------------------------


def test_a_whole_chain_is_whole_and_every_tampering_shows(alice: User, session_of_alice: DiagnosisSession) -> None:
    for number in range(4):
        Event.record(session_of_alice, "step_saved", alice, step="é", n=[number, None, 0.1])
    assert Event.first_broken(session_of_alice) is None
    third = Event.objects.filter(session=session_of_alice, number=3)
    kept = third.values().get()
    tampered: list[dict[str, Any]] = [
        {"kind": "commented"},
        {"data": {"step": "other"}},
        {"actor_name": "mallory"},
        {"hash": "0" * 64},
    ]
    for change in tampered:
        third.update(**change)
        assert Event.first_broken(session_of_alice) == 3, change
        third.update(**kept)
    assert Event.first_broken(session_of_alice) is None
    third.delete()
    assert Event.first_broken(session_of_alice) == 3


def test_the_database_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    environment.sqlite(tmp_path / "data")
    assert (tmp_path / "data" / "peerpath.sqlite3").stat().st_mode & 0o777 == 0o600


def test_answers_of_two_people_at_once_are_told(
    browser: Client, session_of_alice: DiagnosisSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = DiagnosisSession.objects.filter(pk=session_of_alice.pk)
    view = "webapp.pages.session.look.acting"

    def meanwhile(request: Any) -> Any:
        kept.update(version=7)
        return request.user

    monkeypatch.setattr(view, meanwhile)
    given = {"version": "0", "host_root": "yes"}
    answer = browser.post(f"/sessions/{session_of_alice.pk}/host", given)
    assert answer.status_code == 409
    assert "Someone saved this session" in html_of(answer)
    assert kept.get().workload == {}
