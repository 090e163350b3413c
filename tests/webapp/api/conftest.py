"""A program that asks as a person, and a server of its own to ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import port_for
import pytest
from django.test import Client

from webapp.accounts.models import ApiToken, Scope, User
from webapp.api import remote as client

ROOT = Path(__file__).resolve().parents[3]
Done = subprocess.CompletedProcess[bytes]


@dataclass(frozen=True)
class Program:
    """Asks with one token; JSON in, JSON out."""

    token: str

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        sent: dict[str, Any] = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["headers"] = {"authorization": f"Bearer {self.token}", **named}
        return Client(raise_request_exception=False).generic(method, f"/api/v1{path}", **sent)


@pytest.fixture
def program() -> Callable[..., Program]:
    """Makes a token for a person, with every scope unless some are named."""

    def make(owner: User, *scopes: str) -> Program:
        named = list(scopes or Scope.values)
        return Program(ApiToken.make(owner, name="a test", scopes=named, days=1)[1])

    return make


@dataclass(frozen=True)
class Served:
    """tokens: of alice, carol, and carol's that may only read. parts: of alice's session."""

    url: str
    tokens: dict[str, str]
    parts: dict[str, Any]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`serve` with an installation of its own; ended by its process id."""
    port, folder = port_for.select_random(), tmp_path_factory.mktemp("served")
    url = f"http://127.0.0.1:{port}"
    env = {**os.environ, "PEERPATH_DATA": str(folder), "PEERPATH_PUBLIC_URL": url}
    with (folder / "served.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", str(port)],
            cwd=ROOT,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"{url}/api/v1/openapi.json")
        begin = "from tests.webapp.api.seeded import seed; seed()"
        shell = [sys.executable, "manage.py", "shell", "-v", "0", "-c", begin]
        made = subprocess.run(shell, cwd=ROOT, env=env, stdout=subprocess.PIPE, check=True)
        yield Served(url, **json.loads(made.stdout.splitlines()[-1]))
    finally:
        process.kill()
        process.wait()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(url, timeout=30).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.1)


@pytest.fixture
def remote(served: Served) -> Callable[..., Done]:
    """As carol, unless another token is named."""

    def call(*arguments: str, given: bytes = b"", token: str = "", url: str = "") -> Done:
        program = ["webapp/config/bootstrap.py", "run", "remote", url or served.url]
        return subprocess.run(
            [sys.executable, *program, *arguments],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PEERPATH_TOKEN": token or served.tokens["carol"]},
            input=given,
            capture_output=True,
            check=False,
            timeout=60,
        )

    return call


def opened(remote: Callable[..., Done], title: str) -> str:
    done = remote("new", title)
    assert done.returncode == client.DONE, done.stderr
    return done.stdout.decode().strip()
