"""A quick password hash, a machine of Alice's session, Peerpath's command line, and a real SSH server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import alive, ssh_keys, sshd
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Target

__all__ = ["alive", "ssh_keys", "sshd"]  # fixtures
ROOT = Path(__file__).resolve().parents[2]


def gpu_vm(session: DiagnosisSession, user: User, host: str = "gpu-vm") -> Target:
    return Target.objects.create(session=session, role="guest", agent="ssh", host=host, user="ops", created_by=user)


@pytest.fixture
def target(session_of_alice: DiagnosisSession, alice: User) -> Target:
    return gpu_vm(session_of_alice, alice)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts `manage.py …` in a process of its own with a data folder of its own, or `data`."""

    def begin(*arguments: object, data: Path | None = None) -> subprocess.Popen[bytes]:
        settings = {"PEERPATH_DATA": str(data or tmp_path / "data")}
        settings |= {"PEERPATH_REDIS_URL": "", "PEERPATH_DATABASE_URL": ""}
        return subprocess.Popen(
            [sys.executable, "manage.py", *map(str, arguments)],
            cwd=ROOT,
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return begin


@pytest.fixture
def peerpath(start: Callable[..., subprocess.Popen[bytes]]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `manage.py …` to its end. given: its standard input."""

    def run(*arguments: object, given: str = "", data: Path | None = None) -> subprocess.CompletedProcess[str]:
        process = start(*arguments, data=data)
        out, err = process.communicate(given.encode(), timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out.decode(), err.decode())

    return run


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
