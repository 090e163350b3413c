"""A machine of our own to run things on, and people who may."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Run, Target
from webapp.records.sessions import session_open
from worker import tasks

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def admin(transactional_db: None, person: Callable[..., User]) -> User:
    """Committed for real, so that threads and other processes see it."""
    return person("carol", is_staff=True)


@pytest.fixture
def session(admin: User) -> DiagnosisSession:
    return session_open(owner=admin, title="a real run")


@pytest.fixture
def here(session: DiagnosisSession, admin: User) -> Target:
    return Target.objects.create(session=session, role="guest", agent="local", created_by=admin)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Puts a program of that name first on PATH, as sh."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, script: str) -> Path:
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    return put


@pytest.fixture
def hanging_smi(tools: Callable[[str, str], Path], tmp_path: Path) -> Iterator[Path]:
    """An nvidia-smi that writes its process id to the returned file and then hangs."""
    mark = tmp_path / "smi-pid"
    tools("nvidia-smi", f"echo $$ > {mark}.new && mv {mark}.new {mark}; exec sleep 600")
    yield mark
    if mark.exists() and alive(int(mark.read_text())):
        os.kill(int(mark.read_text()), signal.SIGKILL)


def in_thread(run: Run) -> threading.Thread:
    def work() -> None:
        tasks.run(str(run.pk))
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def alive(pid: int) -> bool:
    """False also for a zombie nobody has waited for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def manage(*arguments: str, env: dict[str, str], stderr: int = subprocess.STDOUT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
