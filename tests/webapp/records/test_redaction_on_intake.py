"""What the operator asks to hide is stored nowhere, and the case still holds together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from agents.facts import View
from tests.agents.test_archives import zipped
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records.intake import take_uploads
from webapp.records.models import DiagnosisSession, Evidence, Pseudonym
from webapp.records.received import Upload
from webapp.records.redaction import redacted

pytestmark = pytest.mark.django_db
UUID = "7d1c2f3e-55aa-4b0e-8f61-0c9d8e7f6a5b"
SECRETS = ("kestrel", "198.51.100.23", UUID, "mirela@birchworks.de", "3c:ec:ef:aa:bb:c1")
HOST = (
    f"root@kestrel:~# qm config 128\ncpu: host\nmachine: q35\nmemory: 64000\nname: llm\n"
    f"net0: virtio=3C:EC:EF:AA:BB:C1,bridge=vmbr0\nsmbios1: uuid={UUID}\n"
    "# ask mirela@birchworks.de, at 198.51.100.23\n"
).encode()
GUEST = f"$ cat /sys/class/dmi/id/product_uuid\n{UUID}\n".encode()


def everything_stored() -> str:
    """Every value of every table, bytes as text."""
    found: list[str] = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            for row in cursor.fetchall():
                found += [
                    bytes(v).decode("utf-8", "replace") if isinstance(v, bytes | memoryview) else str(v) for v in row
                ]
    return "\n".join(found).lower()


def test_a_planted_secret_is_nowhere_in_the_database(session_of_alice: DiagnosisSession, alice: User) -> None:
    archive = Upload("case.zip", zipped({"kestrel/qm.txt": HOST, "readme": b"milk on kestrel\n"}))
    received = take_uploads(session_of_alice, [archive], user=alice, view=View.HOST, hide=True)
    assert any("host name" in note and "email" in note for note in received.notes)
    assert "host.vms" in [part.reader for part in received.understood]
    stored = everything_stored()
    assert "<host-1>" in stored
    for secret in SECRETS:
        assert secret not in stored, secret


def test_stored_as_it_came_unless_asked(session_of_alice: DiagnosisSession, alice: User) -> None:
    take_uploads(session_of_alice, [Upload("", HOST)], user=alice, view=View.HOST)
    assert "kestrel" in everything_stored()


def test_the_same_secret_in_a_later_text_has_the_same_token_and_another_has_not(
    session_of_alice: DiagnosisSession, alice: User
) -> None:
    for raw, view in ((HOST, View.HOST), (GUEST, View.GUEST), (b"root@heron:~# hostname\nheron\n", None)):
        take_uploads(session_of_alice, [Upload("", raw)], user=alice, view=view, hide=True)
    host, guest, other = (bytes(e.body).decode() for e in Evidence.objects.order_by("pk"))
    token = guest.split("\n")[1]
    assert f"uuid={token}\n" in host
    assert "<host-1>" in host
    assert "<host-3>" in other  # kestrel and its VM have the first two
    assert UUID not in everything_stored()


def test_what_is_hidden_later_keeps_the_tokens_that_exports_gave(
    session_of_alice: DiagnosisSession, alice: User
) -> None:
    raw = b"root@osprey:~# hostname\nosprey\n"
    take_uploads(session_of_alice, [Upload("", raw)], user=alice)
    first = Evidence.objects.get()
    shown = redacted(first).text
    take_uploads(session_of_alice, [Upload("", HOST)], user=alice, view=View.HOST, hide=True)
    take_uploads(session_of_alice, [Upload("", b"root@heron:~# hostname\nheron\n")], user=alice)
    assert redacted(first).text == shown == "root@<host-1>:~# hostname\n<host-1>\n"
    _, hidden, last = Evidence.objects.order_by("pk")
    assert bytes(hidden.body).startswith(b"root@<host-2>:~#")
    assert redacted(last).text.startswith("root@<host-4>:~#")


def test_the_box_on_the_page(session_of_alice: DiagnosisSession, alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    assert 'name="hide"' in html_of(browser.get(f"/sessions/{session_of_alice.pk}/host"))
    page = f"/sessions/{session_of_alice.pk}/paste/host"
    shown = html_of(browser.post(page, {"text": HOST.decode(), "hide": "1"}))
    assert "Hidden before anything was kept" in shown
    assert "kestrel" not in everything_stored()


def test_diagnose_redacts_what_it_prints_and_keeps(
    carol: User, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kestrel.txt").write_bytes(HOST)
    (tmp_path / "guest.txt").write_bytes(GUEST)
    call_command("diagnose", str(tmp_path), "--json", "--save", "--redact")
    printed = capsys.readouterr()
    assert json.loads(printed.out)["facts"]["vm.uuid"]["kind"] == "known"
    assert "Hidden before anything was kept" in printed.err
    stored = everything_stored()
    for secret in SECRETS:
        assert secret not in printed.out.lower(), secret
        assert secret not in stored, secret
    assert Pseudonym.objects.exists()
