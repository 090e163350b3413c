"""A data folder of the schema before 0.1.0 is refused in one sentence, and carried over whole."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]
BEFORE = Path(__file__).with_name("schema_before.sql")
# What sealed the second factor of that folder: the bytes 0 to 31.
KEY = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the version before left it: two people, a session with outputs, a link, a decision."""
    monkeypatch.setenv("PEERPATH_SECRET_KEYS", KEY)
    data = tmp_path / "data"
    data.mkdir()
    with closing(sqlite3.connect(data / "peerpath.sqlite3")) as database:
        database.executescript(BEFORE.read_text())
    return data


def rows(folder: Path, query: str, name: str = "peerpath.sqlite3") -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / name)) as database:
        return database.execute(query).fetchall()


def test_migrating_refuses_and_says_what_to_do(folder: Path, peerpath: Command) -> None:
    refused = peerpath("migrate", data=folder)
    assert refused.returncode == 1
    assert "./run carry-over" in refused.stderr
    assert rows(folder, "SELECT title FROM triage_diagnosissession")


def test_every_row_is_carried_over_and_the_old_ones_stay(folder: Path, peerpath: Command) -> None:
    done = peerpath("carry_over", data=folder)
    assert done.returncode == 0, done.stderr
    for new, old in {
        "records_diagnosissession": "triage_diagnosissession",
        "records_evidence": "triage_evidence",
        "records_storedreading": "triage_storedreading",
        "records_event": "triage_event",
        "records_link": "handoff_link",
        "records_link_opened_by": "handoff_link_opened_by",
        "records_answer": "handoff_answer",
        "review_decision": "review_decision",
        "review_comment": "review_comment",
        "accounts_user": "accounts_user",
        "accounts_apitoken": "accounts_apitoken",
    }.items():
        before = rows(folder, f"SELECT count(*) FROM {old}", "peerpath-before.sqlite3")
        assert rows(folder, f"SELECT count(*) FROM {new}") == before != [(0,)], new
    kinds = [row[0] for row in rows(folder, "SELECT type FROM mfa_authenticator ORDER BY type")]
    assert kinds == ["recovery_codes", "totp", "webauthn"]
    assert rows(folder, "SELECT count(*) FROM records_entry_words WHERE records_entry_words MATCH 'eleven'")[0][0]
    checked = peerpath("audit", "verify", data=folder)
    assert "every chain is whole" in checked.stdout
    assert peerpath("migrate", "--check", data=folder).returncode == 0


def test_it_is_done_once(folder: Path, peerpath: Command) -> None:
    assert peerpath("carry_over", data=folder).returncode == 0
    again = peerpath("carry_over", data=folder)
    assert again.returncode == 1
    assert "nothing to carry over" in again.stderr


def test_a_schema_of_long_before_is_left_as_it_is(folder: Path, peerpath: Command) -> None:
    with closing(sqlite3.connect(folder / "peerpath.sqlite3")) as database:
        database.execute("DELETE FROM django_migrations WHERE app = 'triage' AND name LIKE '0018%'")
        database.commit()
    refused = peerpath("carry_over", data=folder)
    assert refused.returncode == 1
    assert "older than the last one" in refused.stderr
    assert rows(folder, "SELECT title FROM triage_diagnosissession")


def test_a_failure_in_the_middle_leaves_the_database_as_it_was(folder: Path, peerpath: Command) -> None:
    with closing(sqlite3.connect(folder / "peerpath.sqlite3")) as database:
        database.execute("UPDATE review_decision SET session_id = 'nowhere'")
        database.commit()
    failed = peerpath("carry_over", data=folder)
    assert failed.returncode != 0
    assert rows(folder, "SELECT title FROM triage_diagnosissession")
    assert not (folder / "peerpath-before.sqlite3").exists()


def test_without_the_key_of_the_second_factors_nothing_is_carried_over(
    folder: Path, peerpath: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEERPATH_SECRET_KEYS", "k2:" + "A" * 43 + "=")
    refused = peerpath("carry_over", data=folder)
    assert refused.returncode == 1
    assert "Nothing was carried over." in refused.stderr
    assert "Traceback" not in refused.stderr
    assert rows(folder, "SELECT title FROM triage_diagnosissession")
