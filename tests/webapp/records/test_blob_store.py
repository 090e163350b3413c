"""Evidence outside the database, in a folder."""

from __future__ import annotations

import io
import resource
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.core.files.base import File
from django.core.files.storage import FileSystemStorage
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from tests.evidence_store import EvidenceStore
from tests.pages import html_of
from webapp.accounts.models import ApiToken, User
from webapp.config import addresses
from webapp.records import blob_store, intake
from webapp.records.models import DiagnosisSession, Evidence
from webapp.review.bundle.export import bundle
from webapp.review.bundle.redacted import shareable

pytestmark = pytest.mark.django_db
CMDLINE = b"$ cat /proc/cmdline\nBOOT_IMAGE=/boot/vmlinuz-6.8 root=/dev/vda1 iommu=pt\n"


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.STORAGES = settings.STORAGES | addresses.storage(f"file://{tmp_path}/evidence")
    return tmp_path / "evidence"


LONG = b"".join(b"[%8d] pcieport 0000:00:01.1: AER: Corrected error\n" % n for n in range(30_000))


def kept_long(session: DiagnosisSession) -> Evidence:
    about = {"session": session, "reader": "paste", "view": "", "origin": "paste"}
    return Evidence.store(blob_store.store(LONG), **about)


def taken(session: DiagnosisSession, user: User) -> Evidence:
    evidence = intake.take_text(session, CMDLINE, user=user).evidence
    return Evidence.objects.get(pk=evidence.pk)


def test_the_bytes_lie_in_the_folder_under_their_hash(
    folder: Path, session_of_alice: DiagnosisSession, alice: User
) -> None:
    found = taken(session_of_alice, alice)
    file = folder / found.sha256[:2] / found.sha256
    assert file.read_bytes() == CMDLINE == found.raw
    assert file.stat().st_mode & 0o077 == 0
    assert bytes(found.body) == b""
    assert found.readings.exists()
    assert intake.reread_one(found) is False


def test_altered_bytes_are_not_shown_as_what_was_stored(
    folder: Path, session_of_alice: DiagnosisSession, alice: User
) -> None:
    found = taken(session_of_alice, alice)
    (folder / found.place).write_bytes(CMDLINE.replace(b"pt", b"on"))
    with pytest.raises(blob_store.LostError, match="not what was stored"):
        bool(found.raw)
    browser = Client()
    browser.force_login(alice)
    address = f"/sessions/{session_of_alice.pk}/evidence/{found.name}"
    assert "not what was stored" in html_of(browser.get(address))
    assert browser.get(address, {"download": "1"}).status_code == 503


def test_of_a_long_output_only_what_is_looked_at_is_fetched(
    folder: Path, session_of_alice: DiagnosisSession, alice: User
) -> None:
    found = kept_long(session_of_alice)
    first, second = (folder / block.place for block in found.blocks.all())
    assert found.raw == LONG == first.read_bytes() + second.read_bytes()
    second.write_bytes(b"something else")
    assert found.text.total == 30_000
    assert found.text.cut(2, 1) == [LONG.split(b"\n")[1]]
    with pytest.raises(blob_store.LostError, match="not what was stored"):
        found.text.cut(29_999, 1)
    with pytest.raises(blob_store.LostError, match="not what was stored"):
        bool(found.raw)
    browser = Client()
    browser.force_login(alice)
    address = f"/sessions/{session_of_alice.pk}/evidence/{found.name}"
    assert "AER" in html_of(browser.get(address))
    for query in ({"at": "29000"}, {"rows": "29000"}, {"find": "nowhere"}):
        assert "not what was stored" in html_of(browser.get(address, query))


def test_a_long_output_in_the_database_takes_less_and_is_the_same(
    session_of_alice: DiagnosisSession, alice: User
) -> None:
    found = kept_long(session_of_alice)
    bodies_of = [bytes(block.body) for block in found.blocks.all()]
    assert 0 < sum(map(len, bodies_of)) < len(LONG) / 4
    assert Evidence.objects.get(pk=found.pk).raw == LONG
    browser = Client()
    browser.force_login(alice)
    address = f"/sessions/{session_of_alice.pk}/evidence/{found.name}"
    assert browser.get(address, {"download": "1"}).content == LONG
    page = html_of(browser.get(address, {"find": "[   29998]"}))
    assert 'data-n="29999" class="hit"' in page.replace(' id="L29999"', "")


@pytest.mark.service
@pytest.mark.django_db(transaction=True)
def test_the_folder_holds_the_same_bytes_once_and_a_purge_takes_them(
    store: EvidenceStore, session_of_alice: DiagnosisSession, alice: User, bob: User
) -> None:
    found = taken(session_of_alice, alice)
    other = DiagnosisSession.objects.create(title="another", owner=bob)
    twin = taken(other, bob)
    assert found.raw == twin.raw == CMDLINE
    assert store.names == [found.place]
    assert kept_long(session_of_alice).raw == kept_long(other).raw == LONG
    assert len(store.names) == 3
    ago = timezone.now() - timedelta(days=200)
    for session in (session_of_alice, other):
        aged(session, ago)
        call_command("purge", "--older-than", "100")
        kept_for_the_twin = session == session_of_alice
        assert bool(store.names) is kept_for_the_twin


def aged(session: DiagnosisSession, ago: Any) -> None:
    DiagnosisSession.objects.filter(pk=session.pk).update(created_at=ago)
    session.evidence.update(created_at=ago)


class Counting(FileSystemStorage):
    """A folder that tells how often something was asked of it."""

    opened: ClassVar[list[str]] = []

    def open(self, name: str, mode: str = "rb") -> File[Any]:
        self.opened.append(name)
        return super().open(name, mode)


def test_what_a_machine_says_again_is_fetched_once_for_a_bundle(
    settings: Any, tmp_path: Path, session_of_alice: DiagnosisSession, alice: User
) -> None:
    """769 outputs of 29 kinds took 60 s of a slow storage."""
    options = {"location": str(tmp_path)}
    outside = {"BACKEND": f"{Counting.__module__}.Counting", "OPTIONS": options}
    settings.STORAGES = settings.STORAGES | {"evidence": outside}
    about = {"session": session_of_alice, "reader": "paste", "view": "", "origin": "paste"}
    other = CMDLINE.replace(b"iommu=pt", b"console=10.11.12.13")
    for raw in (CMDLINE, other, CMDLINE, CMDLINE, other):
        Evidence.store(blob_store.store(raw), **about)
    Evidence.objects.filter(pk=session_of_alice.evidence.first().pk).update(  # type: ignore[union-attr]
        purged_at=timezone.now()
    )
    Counting.opened.clear()
    with zipfile.ZipFile(io.BytesIO(bundle(session_of_alice))) as archive:
        found = [archive.read(f"evidence/{number:05}") for number in range(5)]
    assert found == [b"", other, CMDLINE, CMDLINE, other]
    assert len(Counting.opened) == 2
    before = sorted(tmp_path.rglob("*"))
    shareable(session_of_alice)
    assert len(Counting.opened) == 4
    assert sorted(tmp_path.rglob("*")) == before, "no purge would find what is written for a moment"


@pytest.mark.django_db(transaction=True)
def test_what_a_storage_did_not_let_go_of_goes_with_the_next_purge(
    folder: Path, session_of_alice: DiagnosisSession, alice: User
) -> None:
    found, long = taken(session_of_alice, alice), kept_long(session_of_alice)
    aged(session_of_alice, timezone.now() - timedelta(days=200))
    away = folder.rename(folder.with_name("away"))
    folder.write_text("no folder")
    with pytest.raises(CommandError, match="next purge"):
        call_command("purge", "--older-than", "100")
    found.refresh_from_db()
    assert (found.raw, found.purged_at is None) == (b"", False)
    assert Evidence.objects.get(pk=long.pk).raw == b""
    folder.unlink()
    away.rename(folder)
    call_command("purge", "--older-than", "100")
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_while_the_storage_is_away_pages_show_what_is_known(
    folder: Path, session_of_alice: DiagnosisSession, alice: User
) -> None:
    given = intake.take_text(session_of_alice, b"nobody knows this\n", user=alice)
    found = Evidence.objects.get(pk=given.evidence.pk)
    assert found.unplaced
    folder.rename(folder.with_name("away"))
    folder.write_text("no folder")
    browser = Client()
    browser.force_login(alice)
    for page in ("guest", "diagnosis", f"evidence/{found.name}"):
        answer = browser.get(f"/sessions/{session_of_alice.pk}/{page}")
        assert answer.status_code == 200, page
    assert "does not give" in html_of(answer)


def test_while_the_storage_is_away_people_and_programs_are_told_to_come_back(
    folder: Path, session_of_alice: DiagnosisSession, alice: User
) -> None:
    folder.write_text("no folder")
    browser = Client(raise_request_exception=False)
    token = ApiToken.make(alice, name="t", scopes=["write"], days=1)[1]
    browser.force_login(alice)
    given = {"text": CMDLINE.decode()}
    page = browser.post(f"/sessions/{session_of_alice.pk}/paste/guest", given)
    answer = browser.post(
        f"/api/v1/sessions/{session_of_alice.pk}/evidence",
        given,
        content_type="application/json",
        headers={"authorization": f"Bearer {token}"},
    )
    assert (page.status_code, answer.status_code) == (503, 503)
    assert "storage" in html_of(page)
    assert "storage" in answer.json()["detail"]


def test_a_write_that_fails_half_way_leaves_nothing_under_the_name(folder: Path) -> None:
    """As on a disk that fills up: the next time that the same is given it is stored whole."""
    given = LONG[: 256 * 1024]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    try:
        with pytest.raises(blob_store.LostError, match="does not take anything"):
            blob_store.store(given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    kept = blob_store.store(given).columns
    assert blob_store.fetch(kept["place"], kept["sha256"]) == given
