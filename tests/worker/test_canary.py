"""Planted secrets: a key, its passphrase, tokens of links and programs and a webhook's secret are looked for
everywhere they must not be.

A whole journey with a real sshd, Redis and a worker process: the key is stored through the page, opens a
connection, is refused, is rotated; meanwhile process lists and everything that Redis hears are recorded.
"""

from __future__ import annotations

import base64
import getpass
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import port_for
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from agents.host_keys import HostKey
from tests.agents.conftest import Sshd, ssh_keys, sshd
from tests.waiting import wait_until
from tests.webapp.addresses import CONVERTERS, PATTERNS, address, arguments_of
from tests.worker.conftest import ROOT
from webapp.accounts.models import ApiToken, User
from webapp.handoff.models import Link
from webapp.notices.webhooks import webhook_add
from webapp.records.models import DiagnosisSession, PinnedHostKey, Run, RunState, StoredKey, Target
from webapp.records.sessions import session_open
from webapp.records.stored_keys import KeyRefusedError, key_add
from webapp.runs import lifecycle, queue

__all__ = ["ssh_keys", "sshd"]  # fixtures
pytestmark = pytest.mark.service
PASSPHRASE = "canary-Passphrase-5f1d0c77"


@pytest.fixture
def canaries(sshd: Sshd, tmp_path: Path) -> dict[str, str]:
    """The secrets by name. The machine lets the key in."""
    path = tmp_path / "canary"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", PASSPHRASE, "-C", "canary"]
    subprocess.run([*make, "-f", path], check=True)
    with (sshd.folder / "authorized_keys").open("a") as file:
        file.write(path.with_suffix(".pub").read_text())
    return {"key": path.read_text(), "passphrase": PASSPHRASE}


def forms_of(secrets: dict[str, str]) -> dict[bytes, str]:
    """Every way of writing a secret that could turn up, with its name."""
    found: dict[bytes, str] = {}
    for name, secret in secrets.items():
        lines = secret.splitlines()
        parts = [line for line in lines[1:-1] if len(line) > 60] if len(lines) > 2 else [secret]
        # The first line of a key's body is its format, alike in many keys.
        for part in parts[1:] if len(parts) > 1 else parts:
            raw = part.encode()
            found |= dict.fromkeys((raw, quote(part).encode(), base64.b64encode(raw)), name)
            found |= {raw.hex().encode(): name, base64.urlsafe_b64encode(raw)[:-4]: name}
    return found


class Listening:
    """What Redis is told, and what every process is called and given, until it is closed."""

    def __init__(self, redis_port: int) -> None:
        self.seen = bytearray()
        self._stop = threading.Event()
        self._monitor = subprocess.Popen(["redis-cli", "-p", str(redis_port), "monitor"], stdout=subprocess.PIPE)
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self) -> None:
        while not self._stop.wait(0.01):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    self.seen += (process / "cmdline").read_bytes()
                except OSError:
                    continue
            self.seen = bytearray(b"\n".join(set(bytes(self.seen).split(b"\n"))))

    def close(self) -> bytes:
        self._stop.set()
        self._thread.join()
        self._monitor.terminate()
        heard = self._monitor.communicate()[0]
        assert b"peerpath.run" in heard, "Redis was listened to"
        return bytes(self.seen) + heard


@pytest.fixture
def redis_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    port = port_for.select_random()
    options = ["--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    monkeypatch.setattr(queue, "celery", queue.make_celery(f"redis://127.0.0.1:{port}/0"))
    wait_until(lambda: subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).stdout == b"PONG\n")
    yield port
    server.kill()
    server.wait()


@pytest.fixture
def worker_log(redis_port: int, database_folder: Path, tmp_path: Path) -> Iterator[Path]:
    """A worker that says everything it has to say."""
    log = tmp_path / "worker.log"
    settings = {
        "PEERPATH_REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
        "PEERPATH_DATA": str(database_folder),
        "PEERPATH_LOG_LEVEL": "DEBUG",
    }
    with log.open("wb") as file:
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "worker.celery_app", "worker", "-l", "debug"],
            cwd=ROOT,
            env=os.environ | settings,
            stdout=file,
            stderr=file,
        )
        yield log
        worker.kill()
        worker.wait()


def test_no_secret_is_found_where_it_must_not_be(
    canaries: dict[str, str],
    sshd: Sshd,
    session: DiagnosisSession,
    admin: User,
    redis_port: int,
    worker_log: Path,
    database_folder: Path,
    caplog: pytest.LogCaptureFixture,
    settings: Callable[..., object],
) -> None:
    settings.DATA_DIR = database_folder  # type: ignore[attr-defined]
    caplog.set_level("DEBUG")
    listening = Listening(redis_port)
    browser = Client(raise_request_exception=False)
    browser.force_login(admin)
    canaries["sign-in"] = browser.cookies["peerpath_session"].value
    pages = stored_through_the_page(browser, canaries)
    target = machine_of(session, admin, sshd)
    done = run(target, admin)
    assert (done.state, done.problem) == (RunState.SUCCEEDED, "")
    refused = refused_there(target, admin, sshd)
    assert refused.failure == "AuthenticationFailed"
    call_command("rotate_keys")
    with pytest.raises(KeyRefusedError) as caught:
        key_add(admin, name="x", private_key=canaries["key"], passphrase=PASSPHRASE + "-wrong")
    canaries["token"] = Link.make(session, made_by=admin, person="the admin", purpose="why", hours=1, phases=[])[1]
    browser.get(f"/link/{canaries['token']}")
    canaries |= of_programs(session, admin, browser)
    pages |= everything_shown(browser, session, admin)
    seen = {
        "argv and Redis": listening.close(),
        "the worker's log": worker_log.read_bytes(),
        "our log": caplog.text.encode(),
        "a traceback": str(caught.getrepr(style="long", chain=True)).encode(),
        **{f"the page {name}": body for name, body in pages.items()},
    }
    connection.close()
    seen |= {f"file {p.name}": p.read_bytes() for p in database_folder.glob("peerpath.sqlite3*")}
    assert b"claimed" in seen["the worker's log"], "it was said what happened"
    assert len(pages) > 25
    assert f"-p\0{redis_port}".encode() in seen["argv and Redis"], "process lists were read"
    for name, secret in canaries.items():
        assert any(form in secret.encode() for form in forms_of({name: secret})), "it can be found"
    found = {(where, name) for where, text in seen.items() for form, name in forms_of(canaries).items() if form in text}
    assert not found


def of_programs(session: DiagnosisSession, admin: User, browser: Client) -> dict[str, str]:
    """Secrets that a program holds: each is told to it once. The token is used."""
    _, signs = webhook_add(session, url="https://1.1.1.1/", kinds=["mention"], by=admin)
    token = ApiToken.make(admin, name="canary", scopes=["read"], days=1)[1]
    said = browser.get("/api/v1/me", headers={"authorization": f"Bearer {token}"})
    assert said.status_code == 200
    return {"webhook": signs, "API token": token.split("_", 2)[2]}


def stored_through_the_page(browser: Client, canaries: dict[str, str]) -> dict[str, bytes]:
    typed = {"name": "canary", "private_key": canaries["key"]}
    wrong = browser.post("/keys", typed | {"passphrase": PASSPHRASE, "certificate": "no such"})
    assert wrong.status_code == 422
    stored = browser.post("/keys", typed | {"passphrase": PASSPHRASE}, follow=True)
    assert StoredKey.objects.count() == 1
    return {"keys with a problem": wrong.content, "keys after storing": stored.content}


def machine_of(session: DiagnosisSession, admin: User, sshd: Sshd) -> Target:
    pin = HostKey.from_line((sshd.folder / "host_key.pub").read_text())
    PinnedHostKey.objects.create(
        session=session,
        host="127.0.0.1",
        port=sshd.port,
        key_line=pin.line,
        fingerprint=pin.fingerprint,
        accepted_by=admin,
    )
    return Target.objects.create(
        session=session,
        role="guest",
        agent="ssh",
        host="127.0.0.1",
        port=sshd.port,
        user=getpass.getuser(),
        stored_key=StoredKey.objects.get(),
        created_by=admin,
    )


def run(target: Target, admin: User) -> Run:
    made = lifecycle.queue_probes(target.session, target, admin)
    wait_until(lambda: Run.objects.get(pk=made.pk).ended)
    return Run.objects.get(pk=made.pk)


def refused_there(target: Target, admin: User, sshd: Sshd) -> Run:
    """The machine takes the key back. The worker's kept connection ends first."""
    subprocess.run(["cp", sshd.folder / "stranger_key.pub", sshd.folder / "authorized_keys"], check=True)
    sshd.stop()
    sshd.start()
    return run(target, admin)


def everything_shown(browser: Client, session: DiagnosisSession, admin: User) -> dict[str, bytes]:
    """Every address that answers GET, exports among them."""
    real = {
        "session_id": session.pk,
        "target_id": session.targets.get().pk,
        "run_id": session.runs.first().pk,  # type: ignore[union-attr]
        "name": session.evidence.first().name,  # type: ignore[union-attr]
        "key_id": StoredKey.objects.get().pk,
    }
    parts = arguments_of(session_open(owner=admin, title="beside"), admin) | real
    shown = {}
    for name in PATTERNS:
        if CONVERTERS[name] <= parts.keys():
            answer = browser.get(address(name, parts))
            streaming = getattr(answer, "streaming", False)
            shown[name] = b"".join(answer) if streaming else answer.content
    return shown
