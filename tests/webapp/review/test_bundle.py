"""Export → open → export gives the same bytes; what was tampered with or is no bundle is refused."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from agents.raw_reading import RawReading
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.handoff.models import Link
from webapp.operations.stuck import unread
from webapp.records import intake, reading
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.event_log import broken
from webapp.records.models import DiagnosisSession, Event, StoredReading
from webapp.records.received import BUNDLE
from webapp.records.redaction import redacted
from webapp.records.sessions import member_add
from webapp.review.bundle import importing
from webapp.review.bundle.export import bundle
from webapp.review.bundle.format import BundleError
from webapp.review.bundle.importing import open_bundle
from webapp.review.bundle.redacted import shareable
from webapp.review.decision_fields import Wording
from webapp.review.decisions import decision_draft
from webapp.review.models import Word
from webapp.review.threads import comment_add
from webapp.review.workflow import ByLink, counting, decision_judge, decision_propose
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="correct horse battery")


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    """With evidence, a thread, and a decision of three people, one of them by a link."""
    made = open_sample("kpro6@host", owner=alice)
    bob = User.objects.create_user("bob")
    member_add(made, user=bob, added_by=alice)
    DiagnosisSession.objects.filter(pk=made.pk).update(quorum=2, symptom="bob and Rolf saw it")
    made.refresh_from_db()
    first = comment_add(made, author=bob, text="at 10.1.2.3?", stance="dispute", anchor="run:1")
    comment_add(made, author=alice, text="yes, bob", reply_to=first)
    wording = Wording(chosen=("gpudirect_clique",), reason="it is the setting")
    result = session_diagnosis(made)
    decision = decision_draft(made, user=alice, wording=wording, result=result)
    decision_propose(decision, user=alice)
    decision_judge(decision, by=bob, word=Word.APPROVED, reason="go", facts=facts_of(made))
    link, _ = Link.make(made, made_by=alice, person="Rolf", purpose="why", hours=1, phases=[], may_approve=True)
    rolf = ByLink(link, "Rolf Zwirner")
    decision_judge(decision, by=rolf, word=Word.APPROVED, reason="go, says Rolf", facts=facts_of(made))
    return made


def elsewhere(session: DiagnosisSession) -> None:
    """The instance forgets the session, as one that never had it."""
    session.decisions.all().delete()
    session.delete()


def test_export_open_export_gives_the_same_bytes(session: DiagnosisSession, alice: User) -> None:
    before = bundle(session)
    assert bundle(session) == before
    elsewhere(session)
    opened = open_bundle(before, user=alice)
    assert opened.same
    assert bundle(opened.session) == before
    assert broken(opened.session) == ""


def test_nobody_here_said_what_a_bundle_says(session: DiagnosisSession, alice: User) -> None:
    raw = bundle(session)
    elsewhere(session)
    opened = open_bundle(raw, user=alice).session
    comment = opened.comments.first()
    assert comment
    assert comment.author.username == "bob (elsewhere)"
    assert not comment.author.is_active
    assert not comment.author.has_usable_password()
    assert list(opened.members.all()) == [alice]


def test_a_bundle_is_opened_once(session: DiagnosisSession, alice: User) -> None:
    with pytest.raises(BundleError, match="here already"):
        open_bundle(bundle(session), user=alice)


def changed(raw: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(buffer, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            new.writestr(entry.filename, change(data) if entry.filename == name else data)
    return buffer.getvalue()


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_to_save_while_a_bundle_is_read(
    session: DiagnosisSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = bundle(session)
    elsewhere(session)
    read, held = reading.read_text, []

    def told(*given: Any, **more: Any) -> RawReading:
        held.append(connection.in_atomic_block)
        return read(*given, **more)

    monkeypatch.setattr(reading, "read_text", told)
    assert open_bundle(raw, user=alice).session.evidence.exists()
    assert held
    assert not any(held)


def test_a_bundle_takes_no_more_than_its_time_and_loses_nothing(
    session: DiagnosisSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = bundle(session)
    count = session.evidence.exclude(reader=BUNDLE).count()
    elsewhere(session)
    with monkeypatch.context() as patch:
        patch.setattr(importing, "READ_WITHIN_S", 0.0)
        opened = open_bundle(raw, user=alice)
    assert opened.unread >= count
    assert not StoredReading.objects.exists()
    assert unread().count() == count
    for evidence in unread():
        intake.reread_one(evidence)
    assert bundle(opened.session) == raw


def test_bundles_leave_one_of_the_two_reading_processes(
    session: DiagnosisSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another bundle has the turn of bundles: this one's long output waits, a paste does not."""
    long = b"$ uname -r\n6.8.12-9-pve\n" + b"x" * 79 * 2000
    intake.take_text(session, long, user=alice)
    raw = bundle(session)
    elsewhere(session)
    monkeypatch.setattr(importing, "READ_WITHIN_S", 3.0)
    with importing._turn(len(long), time.monotonic() + 60) as mine:
        assert mine
        assert open_bundle(raw, user=alice).unread >= 1
        assert reading.read_text(long, role=None).notes == ()


def test_a_tampered_output_is_refused(session: DiagnosisSession, alice: User) -> None:
    raw = changed(bundle(session), "evidence/00003", lambda data: data + b"NS")
    elsewhere(session)
    with pytest.raises(BundleError, match="hashes differ"):
        open_bundle(raw, user=alice)
    assert not DiagnosisSession.objects.exists()


def test_a_tampered_event_is_found(session: DiagnosisSession, alice: User) -> None:
    raw = changed(bundle(session), "events.jsonl", lambda d: d.replace(b'"alice"', b'"mallo"', 1))
    elsewhere(session)
    assert broken(open_bundle(raw, user=alice).session) == ("event 1 was altered, or one before it is missing")


def _at(data: bytes, time: str) -> bytes:
    """The first time of it, in another time zone at an end of the calendar."""
    return re.sub(rb'("(?:created_)?at": ?)"[^"]+"', rb'\1"%s"' % time.encode(), data, count=1)


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("manifest.json", lambda d: b"{", "cannot be read"),
        ("manifest.json", lambda d: d.replace(b"bundle/1", b"bundle/9"), "opens"),
        ("session.json", lambda d: d.replace(b'"epoch": 0', b'"epoch": "x"'), "cannot be read"),
        ("session.json", lambda d: d.replace(b'"reply_to": 0', b'"reply_to": 7'), "do not fit"),
        ("events.jsonl", lambda d: b"[]\n", "cannot be read"),
        ("session.json", lambda d: d.replace(b'"epoch": 0', b'"epoch": 9' + b"0" * 30), "cannot be"),
        ("session.json", lambda d: d.replace(b'"meta": {', b'"meta": {"hint": [1],', 1), "cannot be"),
        ("session.json", lambda d: d.replace(b'"workload": {', b'"workload": {"x": 1,'), "do not fit"),
        ("session.json", lambda d: _at(d, "0001-01-01T00:00:00+14:00"), "do not fit"),
        ("events.jsonl", lambda d: _at(d, "9999-12-31T23:59:59-14:00"), "do not fit"),
    ],
)
def test_what_is_no_bundle_is_refused_whole(
    session: DiagnosisSession, alice: User, name: str, change: Callable[[bytes], bytes], problem: str
) -> None:
    raw = changed(bundle(session), name, change)
    elsewhere(session)
    with pytest.raises(BundleError, match=problem):
        open_bundle(raw, user=alice)
    assert not DiagnosisSession.objects.exists()
    assert not Event.objects.exists()


def test_other_files_are_refused(alice: User) -> None:
    with pytest.raises(BundleError, match="no zip"):
        open_bundle(b"topo -p2p", user=alice)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"0" * 10_000_000)
    with pytest.raises(BundleError, match="compressed"):
        open_bundle(bomb.getvalue(), user=alice)


def test_a_shared_bundle_holds_no_name_and_gives_the_same_verdicts(session: DiagnosisSession, alice: User) -> None:
    raw = shareable(session)
    assert shareable(session) == raw
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert "events.jsonl" not in texts
    assert json.loads(texts["redaction.json"])
    for secret in ("alice", "bob", "Rolf", "Zwirner", "10.1.2.3"):
        assert not [name for name, text in texts.items() if secret in text], secret
    opened = open_bundle(raw, user=alice)  # beside the original: it is another session
    assert opened.same
    before, after = session_diagnosis(session), session_diagnosis(opened.session)
    assert {k: v.kind for k, v in after.verdicts.items()} == {k: v.kind for k, v in before.verdicts.items()}
    (decision,) = opened.session.decisions.all()
    assert [approval.approves for approval in counting(decision)] == [True, True]
    stored = {e.name for e in opened.session.evidence.all()}
    assert {pin["name"] for pin in decision.pins} <= stored
    assert shareable(session) == raw


def test_who_shares_it_keeps_what_its_words_stand_for(session: DiagnosisSession, alice: User) -> None:
    text = b"root@gpuvm17:~# ip route\ndefault via 10.9.8.7 dev eth0\n"
    evidence = intake.take_text(session, text, user=alice).evidence
    client = Client()
    client.force_login(alice)
    address = f"/sessions/{session.pk}/bundle"
    assert f"{address}?key=1" in html_of(client.get(f"/sessions/{session.pk}/summary"))
    told = html_of(client.get(address, {"key": "1"}))
    key = dict(line.split("\t") for line in told.splitlines())
    assert {"gpuvm17", "10.9.8.7"} <= set(key.values())
    hidden = redacted(evidence).text
    for token, secret in key.items():
        hidden = hidden.replace(token, secret)
    assert hidden == text.decode()
    client.force_login(User.objects.create_user("eve"))
    assert client.get(address, {"key": "1"}).status_code == 404


def test_a_browser_takes_it_away_and_opens_it(session: DiagnosisSession, alice: User) -> None:
    client = Client()
    client.force_login(alice)
    address = f"/sessions/{session.pk}/bundle"
    raw = client.get(address, {"raw": "1"}).content
    assert raw == bundle(session)
    shared = client.get(address).content
    assert b"alice" not in shared
    elsewhere(session)
    given = SimpleUploadedFile("b.zip", raw)
    page = html_of(client.post("/sessions/bundle", {"bundle": given}, follow=True))
    assert "the same diagnosis" in page
    refused = client.post("/sessions/bundle", {"bundle": SimpleUploadedFile("b.zip", raw)}, follow=True)
    assert "here already" in html_of(refused)
