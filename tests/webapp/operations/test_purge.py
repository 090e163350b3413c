"""Retention takes bytes away, and nothing else; a removal leaves nothing."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from tests.webapp.addresses import a_full_session
from webapp.accounts.models import User
from webapp.presenting.diagnosis_json import as_json
from webapp.records import intake
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, Event, Evidence, OutputChunk, Run, Target
from webapp.records.sessions import session_open
from webapp.review.bundle.export import bundle
from webapp.review.bundle.importing import open_bundle
from webapp.review.digests import digest_refresh
from webapp.review.threads import comment_add

CMDLINE = b"$ cat /proc/cmdline\nBOOT_IMAGE=/boot/vmlinuz-6.8 root=/dev/vda1 iommu=pt\n"


@pytest.fixture
def old(transactional_db: None, session_of_alice: DiagnosisSession, alice: User) -> Evidence:
    """An output of 200 days ago."""
    taken = intake.take_text(session_of_alice, CMDLINE, user=alice).evidence
    aged(taken)
    return taken


def aged(evidence: Evidence) -> None:
    DiagnosisSession.objects.filter(pk=evidence.session_id).update(created_at=ago())
    Evidence.objects.filter(pk=evidence.pk).update(created_at=ago())


def ago() -> datetime:
    return timezone.now() - timedelta(days=200)


def test_the_bytes_go_and_what_was_read_from_them_stays(old: Evidence) -> None:
    before = as_json(session_diagnosis(old.session))
    call_command("purge", "--older-than", "100")
    old.refresh_from_db()
    assert (old.raw, bytes(old.stderr)) == (b"", b"")
    assert old.size_bytes == len(CMDLINE)
    assert as_json(session_diagnosis(old.session)) == before
    last = old.session.events.first()
    assert last is not None
    assert last.kind == "evidence_purged"
    assert last.data["evidence"] == [f"{old.reader}@{old.sha256}"]
    assert Event.first_broken(old.session) is None
    # Today's parsers find nothing there to read, and leave what was read alone.
    assert old.readings.exists()
    call_command("reread")
    assert old.readings.exists()


def test_what_is_younger_stays(old: Evidence, alice: User) -> None:
    young = intake.take_text(old.session, b"$ uname -r\n6.8.0\n", user=alice).evidence
    call_command("purge", "--older-than", "100", "--dry-run")
    assert Evidence.objects.get(pk=old.pk).purged_at is None
    call_command("purge", "--older-than", "100")
    assert Evidence.objects.get(pk=old.pk).purged_at is not None
    assert Evidence.objects.get(pk=young.pk).raw == b"$ uname -r\n6.8.0\n"


def test_one_session_s_bytes_go_at_once(old: Evidence, alice: User) -> None:
    other = session_open(owner=alice, title="Another")
    kept = intake.take_text(other, CMDLINE, user=alice).evidence
    call_command("purge", "--older-than", "0", "--session", str(old.session_id))
    assert Evidence.objects.get(pk=old.pk).raw == b""
    assert Evidence.objects.get(pk=kept.pk).raw == CMDLINE
    with pytest.raises(CommandError, match="There is no session"):
        call_command("purge", "--older-than", "0", "--session", str(uuid4()))


def test_the_same_bytes_given_again_are_stored_again(old: Evidence, alice: User) -> None:
    call_command("purge", "--older-than", "100")
    again = intake.take_text(old.session, CMDLINE, user=alice)
    assert not again.duplicate
    assert again.evidence.raw == CMDLINE


def test_the_page_says_so_and_there_is_nothing_to_download(old: Evidence, alice: User) -> None:
    call_command("purge", "--older-than", "100")
    browser = Client()
    browser.force_login(alice)
    address = f"/sessions/{old.session_id}/evidence/{old.name}"
    page = html_of(browser.get(address))
    assert "was purged" in page
    assert old.sha256[:16] in page
    assert browser.get(address, {"download": "1"}).status_code == 410


def test_a_purged_session_can_be_taken_away_and_opened(old: Evidence, carol: User) -> None:
    call_command("purge", "--older-than", "100")
    taken = bundle(old.session)
    old.session.delete()
    opened = open_bundle(taken, user=carol)
    there = opened.session.evidence.get()
    assert there.purged_at is not None
    assert (there.sha256, there.raw) == (old.sha256, b"")


def test_the_space_is_given_back(old: Evidence, alice: User) -> None:
    """Live output of runs holds the bytes once more, and goes with them."""
    target = Target.objects.create(session=old.session, role="guest", agent="local", created_by=alice)
    run = Run.objects.create(
        session=old.session, target=target, number=1, kind="probes", state="lost", created_by=alice
    )
    Run.objects.filter(pk=run.pk).update(created_at=ago())
    for number in range(20):
        # What does not shrink by being compressed, as PostgreSQL would.
        OutputChunk.objects.create(run=run, number=number, body=os.urandom(256 * 1024))
    before = size_on_disk()
    call_command("purge", "--older-than", "100", "--full")
    assert before - size_on_disk() > 4 * 2**20
    assert not OutputChunk.objects.exists()


def size_on_disk() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return Path(connection.settings_dict["NAME"]).stat().st_size
        cursor.execute("SELECT pg_total_relation_size(%s)", [OutputChunk._meta.db_table])
        return int(cursor.fetchone()[0])


def rows() -> dict[str, int]:
    """By table; what people have is not the session's."""
    mine = ("records", "review", "handoff", "notices")
    found = (model for app in mine for model in apps.get_app_config(app).get_models())
    return {model.__name__: model._default_manager.count() for model in found}


def test_of_a_removed_session_nothing_is_left(
    transactional_db: None, alice: User, bob: User, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    parts = a_full_session(alice, bob)
    removed = DiagnosisSession.objects.get(pk=parts["session_id"])
    other = DiagnosisSession.objects.exclude(pk=removed.pk).get()
    everything = rows()
    with pytest.raises(CommandError, match="has not ended; cancel it first"):
        call_command("remove", str(removed.pk), "--yes")
    Run.objects.filter(session=removed).update(state="lost")
    call_command("remove", str(removed.pk))
    assert "Nothing was removed" in capsys.readouterr().out
    assert rows() == everything
    call_command("remove", str(removed.pk), "--yes")
    assert removed.title in capsys.readouterr().out
    assert f"session {removed.pk} was removed" in caplog.text
    left = rows()
    assert left["DiagnosisSession"] == 1
    assert Event.first_broken(other) is None
    call_command("remove", str(other.pk), "--yes")
    nothing = {name for name, count in rows().items() if count}
    assert nothing <= {"StoredKey", "Webhook", "Delivery"}  # a person's, or everybody's


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="a file that can be read")
def test_a_word_that_was_removed_is_not_in_the_file(old: Evidence, alice: User) -> None:
    word = b"hunter2trombone"
    intake.take_text(old.session, CMDLINE[:-1] + b" password=" + word + b"\n", user=alice)
    comment_add(old.session, author=alice, text=word.decode())
    digest_refresh(old.session)
    assert word in file()
    call_command("remove", str(old.session_id), "--yes")
    assert word not in file()


def file() -> bytes:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(connection.settings_dict["NAME"]).read_bytes()
