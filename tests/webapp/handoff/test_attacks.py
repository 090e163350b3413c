"""What somebody with a link, or without one, could try."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.pages import html_of
from tests.webapp.handoff.conftest import Sent
from webapp.handoff import throttle
from webapp.handoff.models import Download

pytestmark = pytest.mark.django_db
# Overrides and isolates of writing direction, Unicode's Bidi_Control; and a terminal's escape.
INVISIBLE = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\x1b]")


def _sends(browser: Client, sent: Sent, name: str, raw: bytes) -> str:
    file = SimpleUploadedFile(name, raw)
    answer = browser.post(f"{sent.page}/answer", {"file": file}, follow=True)
    assert answer.status_code == 200
    return html_of(answer)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1$(reboot)", "testserver@evil.example", "a b"])
def test_no_host_header_reaches_the_line_to_type(sent: Sent, erika: Client, settings: Any, host: str) -> None:
    assert erika.get(sent.page, headers={"Host": host}).status_code == 400
    settings.ALLOWED_HOSTS = ["*"]
    forwarded = {"X-Forwarded-Host": host, "X-Forwarded-Proto": "https", "Host": "evil.example"}
    page = html_of(erika.get(sent.page, headers=forwarded))
    assert f"{settings.PUBLIC_URL}/fetch/" in page
    assert "evil.example" not in page
    assert "reboot)" not in page


def test_no_address_leads_elsewhere(sent: Sent, erika: Client) -> None:
    for path in ("/link//evil.example", "/link/..%2f..%2f", f"/link/{sent.token}%0d%0aX-A:%20b"):
        assert Client().get(path).status_code in {404, 410}
    bad = {"text": "x", "next": "https://evil.example", "phase": "//evil.example"}
    for path in ("answer", "questions"):
        answer = erika.post(f"{sent.page}/{path}", bad)
        assert answer.headers["Location"].startswith(sent.page)


def test_pages_are_neither_kept_nor_told_to_others(sent: Sent, erika: Client) -> None:
    erika.get(sent.page)
    script = sent.link.scripts.latest("id")
    for path in (sent.page, f"/fetch/{script.sha256}", f"/link/{sent.token}"):
        answer = erika.get(path)
        assert "no-store" in answer.headers["Cache-Control"]
        assert answer.headers["Referrer-Policy"] in {"same-origin", "no-referrer"}
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


def test_one_link_cannot_fill_the_log_or_the_list_of_downloads(
    sent: Sent, erika: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "ANSWERS", 2)
    monkeypatch.setattr(throttle, "FETCHES", 3)
    events = sent.link.session.events
    erika.get(sent.page)
    before = events.count()
    for number in range(5):
        page = erika.post(f"{sent.page}/questions", {"why_vm": f"{number}"}, follow=True)
    assert "very often" in html_of(page)
    assert events.count() == before + 2
    script = sent.link.scripts.latest("id")
    answers = [erika.get(f"/fetch/{script.sha256}").status_code for _ in range(5)]
    assert answers == [200] * 3 + [429] * 2
    assert Download.objects.count() == 3


def _zip(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return made.getvalue()


@pytest.mark.parametrize("kind", ["gzip", "zip", "zip in zip"])
def test_what_unpacks_without_end_is_refused_quickly(sent: Sent, erika: Client, kind: str) -> None:
    zeros = bytes(40 * 2**20)
    bomb = gzip.compress(zeros, 1) if kind == "gzip" else _zip(bomb=zeros)
    if kind == "zip in zip":
        bomb = _zip(**{f"{n}.zip": bomb for n in range(20)})
    page = _sends(erika, sent, "host.txt", bomb)
    assert "refused" in page or "left out" in page
    kept = sum(e.size_bytes for e in sent.link.session.evidence.all())
    assert kept < 60 * 2**20


@pytest.mark.parametrize("name", ["<b>\u202etxt.exe", "\x1b[2Jhost.txt", "../../etc/passwd", "a\u2066b"])
def test_a_files_name_is_text_that_reads_as_it_is_written(
    sent: Sent, erika: Client, operator: Client, name: str
) -> None:
    page = _sends(erika, sent, name, b"milk and bread\n")
    host = html_of(operator.get(f"/sessions/{sent.link.session_id}/host"))
    links = html_of(operator.get(f"/sessions/{sent.link.session_id}/links"))
    evidence = sent.link.given.get().evidence
    for text in (page, host, links, evidence.label):
        assert not INVISIBLE.search(text)
        assert "<b>\u202e" not in text


def test_what_a_paste_says_is_shown_without_what_turns_it_around(sent: Sent, erika: Client, operator: Client) -> None:
    name = "llm\u202eeno\u2066<q>\x1b]0;owned\x07x"
    config = f"### /etc/pve/qemu-server/128.conf\nname: {name}\nmachine: q35\nmemory: 2048\n"
    page = _sends(erika, sent, "host.txt", config.encode())
    host = html_of(operator.get(f"/sessions/{sent.link.session_id}/host"))
    plan = html_of(operator.get(f"/sessions/{sent.link.session_id}/plan"))
    for text in (page, host, plan):
        assert not INVISIBLE.search(text)
        assert "<q>" not in text
