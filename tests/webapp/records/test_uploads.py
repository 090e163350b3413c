"""Files and archives, on a page and on the command line: each part is evidence of its own."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from agents.facts import View
from tests.agents.test_archives import tarball, zipped
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.pages.session import start
from webapp.records import intake
from webapp.records.intake import take_uploads
from webapp.records.received import Upload
from webapp.records.sessions import session_open
from webapp.runs.outputs import read_sources
from webapp.runs.sources import SourceText

pytestmark = pytest.mark.django_db
MATRIX = b"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n"
FILES = {"rig/p2p.txt": MATRIX, "rig/virt.txt": b"$ systemd-detect-virt\nkvm\n", "rig/shop": b"milk\n"}


def test_each_file_of_an_archive_is_evidence_labelled_with_its_path(alice: User) -> None:
    session = session_open(owner=alice, title="x")
    archive = Upload("rig.tgz", tarball({**FILES, "../out": b"x"}, gzip.compress))
    received = take_uploads(session, [archive], user=alice, view=View.GUEST)
    labels = [e.label for e in session.evidence.order_by("pk")]
    assert labels == [f"rig.tgz/{path}" for path in FILES]
    readers = {part.reader for part in received.understood}
    assert {"guest.topo_p2p_read", "guest.virt_kind"} <= readers
    assert any("leads out" in note for note in received.notes)
    assert take_uploads(session, [archive], user=alice, view=View.GUEST).duplicate


def test_of_a_report_with_thousands_of_files_those_that_say_something_are_kept(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MOST_KEPT_UNREAD", 3)
    session = session_open(owner=alice, title="x")
    files = {f"rig/{n}": b"nothing %d\n" % n for n in range(9)} | {"rig/z": MATRIX}
    received = take_uploads(session, [Upload("rig.zip", zipped(files))], user=alice)
    assert session.evidence.count() == 4
    assert received.understood
    assert received.notes == ("6 files said nothing of use and were not kept.",)


def test_an_uploaded_archive_is_read_on_the_page_and_a_bomb_refused(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    session = session_open(owner=alice, title="x")
    page = f"/sessions/{session.pk}/paste/guest"
    bomb = SimpleUploadedFile("bomb.gz", gzip.compress(bytes(20 << 20)))
    rig = SimpleUploadedFile("rig.zip", zipped(FILES))
    shown = html_of(browser.post(page, {"text": "", "file": [rig, bomb]}))
    assert "outputs understood" in shown
    assert "bomb.gz was refused: It unpacks to more than 300 times its size." in shown
    assert "rig.zip/rig/shop" in shown


def test_a_file_that_is_too_large_is_refused_politely(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "LARGEST_UPLOAD_BYTES", 10)
    browser = Client()
    browser.force_login(alice)
    answer = browser.post("/sessions/read", {"file": SimpleUploadedFile("big.log", MATRIX)}, follow=True)
    assert "big.log is larger than 50 MiB" in html_of(answer)


def test_an_archive_reads_like_its_files_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "rig.zip"
    packed.write_bytes(zipped({**FILES, "case.toml": b"x"}))
    call_command("recognise", str(packed), "--role", "guest")
    assert "rig.zip/rig/p2p.txt" in capsys.readouterr().out
    together = read_sources([SourceText("rig.zip", packed.read_bytes())], View.GUEST)
    apart = read_sources([SourceText(path, raw) for path, raw in FILES.items()], View.GUEST)
    read = [(i.reader, i.readings) for o in together.outputs for i in o.reading.items]
    assert read == [(i.reader, i.readings) for o in apart.outputs for i in o.reading.items]


def test_what_is_left_out_is_said_on_the_command_line() -> None:
    collected = read_sources([SourceText("a.zip", zipped({"x.png": b"\x89PNG", "p2p": MATRIX}))], None)
    assert collected.notes() == ["a.zip/x.png: not text: a picture; give the text itself"]
    assert collected.recognised
    refused = read_sources([SourceText("b.gz", gzip.compress(bytes(20 << 20)))], None)
    assert "times its size" in refused.notes()[0]
