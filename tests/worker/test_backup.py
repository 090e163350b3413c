"""A copy put back is the same database: sessions, evidence byte by byte, and whole chains of events."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.worker.conftest import ROOT
from webapp.operations import backup
from webapp.records.models import DiagnosisSession

pytestmark = pytest.mark.service
Env = dict[str, str]
COUNTS = (
    "import hashlib, json; from webapp.records.models import *;"
    "print(json.dumps([[str(s.pk), s.title, s.events.first().hash] for s in"
    " DiagnosisSession.objects.order_by('pk')] + [[e.pk, e.sha256 == hashlib.sha256(e.raw).hexdigest(),"
    " e.readings.count()] for e in Evidence.objects.order_by('pk')]))"
)


SAMPLE = (
    "from webapp.accounts.models import User; from webapp.runs.samples import *;"
    "user, _ = User.objects.get_or_create(username='first', is_staff=True);"
    "open_sample('kpro6@{}', owner=user)"
)


def run(env: Env, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture(params=["sqlite", "postgresql"])
def used(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Env]:
    """An installation in which the sample case was opened."""
    env = {"PEERPATH_DATA": str(tmp_path / "data"), "PEERPATH_DATABASE_URL": "", "PEERPATH_REDIS_URL": ""}
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else ""
    if url:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute("CREATE DATABASE backed_up")
        env["PEERPATH_DATABASE_URL"] = f"{url.removesuffix('postgres')}backed_up"
    run(env, "migrate", "--verbosity", "0")
    run(env, "shell", "-v", "0", "-c", SAMPLE.format("host"))
    yield env
    if url:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute("DROP DATABASE backed_up WITH (FORCE)")


def test_a_copy_put_back_is_the_same(used: Env, tmp_path: Path) -> None:
    before = run(used, "shell", "-v", "0", "-c", COUNTS)
    assert before.count("true") > 5
    copy = tmp_path / "copy"
    assert "Not in it: the keys" in run(used, "backup", str(copy))
    assert copy.stat().st_mode & 0o077 == 0

    run(used, "purge", "--older-than", "0")
    run(used, "shell", "-v", "0", "-c", SAMPLE.format("first"))
    assert run(used, "shell", "-v", "0", "-c", COUNTS) != before
    assert "add --replace" in run(used, "restore", str(copy), code=1)
    assert "every chain is whole" in run(used, "restore", str(copy), "--replace")
    assert run(used, "shell", "-v", "0", "-c", COUNTS) == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "content",
    [b"hello", b"SQLite format 3\0" + bytes(80), b"PGDMP\x01\x0e\x00", None],
    ids=["text", "cut", "dump", "another"],
)
def test_what_is_no_copy_changes_nothing(
    content: bytes | None, session_of_alice: DiagnosisSession, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    if content is None:
        with closing(sqlite3.connect(given)) as another:
            another.execute("CREATE TABLE other (x)")
    else:
        given.write_bytes(content)
    with pytest.raises(backup.BackupError):
        backup.put_back(given)
    assert DiagnosisSession.objects.get() == session_of_alice
