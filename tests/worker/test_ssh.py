"""A run over a real sshd: the pinned key opens it, another key blocks it."""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import port_for
import pytest
from django.db import connection
from django.test import Client

from agents import ssh
from agents.agent import Unreachable
from agents.host_keys import HostKey, fetch_host_key
from agents.ssh import SshAgent
from tests.pages import html_of
from tests.waiting import wait_for_end, wait_until
from tests.worker.conftest import alive
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, PinnedHostKey, Run, RunState, Target
from webapp.records.sessions import member_add
from webapp.runs import credentials, lifecycle
from worker import tasks

pytestmark = pytest.mark.service
QUICK = "guest.kernel_cmdline"


def make_key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text()


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[int]:
    """An sshd of our own on a free port; who has tmp_path's key may enter."""
    make_key(tmp_path / "host")
    (tmp_path / "authorized").write_text(make_key(tmp_path / "id"))
    Path("/run/sshd").mkdir(exist_ok=True)
    port = port_for.select_random()
    settings = (
        f"ListenAddress=127.0.0.1:{port}",
        f"HostKey={tmp_path}/host",
        f"AuthorizedKeysFile={tmp_path}/authorized",
        "StrictModes=no",
        "PidFile=none",
        "UsePAM=no",
        "PermitRootLogin=yes",
        f"SetEnv=PATH={tmp_path}/bin:/usr/local/bin:/usr/bin:/bin",
    )
    options = [part for setting in settings for part in ("-o", setting)]
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *options], stderr=subprocess.DEVNULL)
    wait_until(lambda: _answers(port))
    yield port
    server.terminate()
    server.wait()


def _answers(port: int) -> bool:
    try:
        return bool(asyncio.run(fetch_host_key("127.0.0.1", port)))
    except Unreachable:
        time.sleep(0.05)
        return False


@pytest.fixture
def machine(session: DiagnosisSession, admin: User, sshd: int, tmp_path: Path) -> Target:
    return Target.objects.create(
        session=session,
        role="guest",
        agent="ssh",
        host="127.0.0.1",
        port=sshd,
        user=getpass.getuser(),
        identity_file=str(tmp_path / "id"),
        created_by=admin,
    )


def accept(target: Target, key: HostKey, by: User) -> None:
    PinnedHostKey.objects.create(
        session=target.session,
        host=target.host,
        port=target.port,
        key_line=key.line,
        fingerprint=key.fingerprint,
        accepted_by=by,
    )


def done(target: Target, by: User) -> Run:
    run = lifecycle.queue_probes(target.session, target, by, [QUICK])
    tasks.run(str(run.pk))
    run.refresh_from_db()
    return run


def test_no_accepted_key_no_run_and_nothing_is_accepted_by_itself(machine: Target, admin: User) -> None:
    run = done(machine, admin)
    assert run.state == RunState.FAILED
    assert "has not been accepted yet" in run.problem
    assert "SHA256:" in run.problem
    assert not run.chunks.exists()
    assert not PinnedHostKey.objects.exists()


def test_the_accepted_key_opens_it_and_another_one_blocks_it(machine: Target, admin: User, tmp_path: Path) -> None:
    accept(machine, asyncio.run(fetch_host_key("127.0.0.1", machine.port)), admin)
    run = done(machine, admin)
    assert (run.state, run.problem) == (RunState.SUCCEEDED, "")
    assert run.evidence.get().reader == QUICK

    other = HostKey.from_line(make_key(tmp_path / "other"))
    PinnedHostKey.objects.update(key_line=other.line)
    blocked = done(machine, admin)
    assert blocked.state == RunState.FAILED
    assert "not the accepted one" in blocked.problem


def cancelled_while_frozen(machine: Target, admin: User, hanging_smi: Path, *, whole: bool) -> tuple[Run, int]:
    """A run that hangs, cancelled while what serves its connection is frozen; whole: new ones are not
    served either. With the process that it had started there."""
    accept(machine, asyncio.run(fetch_host_key("127.0.0.1", machine.port)), admin)
    run = lifecycle.queue_probes(machine.session, machine, admin, ["guest.topo_p2p_read"])
    thread = threading.Thread(target=_carried_out, args=(run,))
    thread.start()
    wait_until(hanging_smi.exists)
    serving = sessions_of(machine.port)
    listening = listeners_of(machine.port) if whole else []
    for pid in [*serving, *listening]:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert lifecycle.request_cancel(run, admin)
        wait_for_end(thread)
        run.refresh_from_db()
        return run, int(hanging_smi.read_text())
    finally:
        for pid in serving:
            os.kill(pid, signal.SIGKILL)
        for pid in listening:
            os.kill(pid, signal.SIGCONT)


def test_a_cancel_that_cannot_be_confirmed_says_so(
    machine: Target, admin: User, monkeypatch: pytest.MonkeyPatch, client: Client, hanging_smi: Path
) -> None:
    """The machine froze: nobody can look whether the run's processes have ended."""
    monkeypatch.setattr(ssh, "_SWEEP_S", 1.0)
    monkeypatch.setattr(ssh, "_RECONNECT_S", 1.0)
    run, _ = cancelled_while_frozen(machine, admin, hanging_smi, whole=True)
    assert (run.state, run.failure, run.cancel_failed) == (RunState.CANCELLED, "CancelFailed", True)
    assert "could not be checked" in run.problem
    client.force_login(admin)
    page = html_of(client.get(f"/sessions/{run.session_id}/runs/{run.pk}"))
    assert "cancel failed" in page


def test_a_cancel_over_a_connection_that_froze_is_done_over_a_new_one(
    machine: Target, admin: User, monkeypatch: pytest.MonkeyPatch, hanging_smi: Path
) -> None:
    """A firewall forgot the connection: the machine itself can be asked."""
    monkeypatch.setattr(ssh, "_SWEEP_S", 1.0)
    run, started = cancelled_while_frozen(machine, admin, hanging_smi, whole=False)
    assert (run.state, run.failure, run.cancel_failed) == (RunState.CANCELLED, "", False)
    assert "could not be checked" not in run.problem
    assert not alive(started)


def _carried_out(run: Run) -> None:
    tasks.run(str(run.pk))
    connection.close()


def sessions_of(port: int) -> list[int]:
    """The sshd processes that serve a connection to this port."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_bytes()
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            above = Path(f"/proc/{parent}/cmdline").read_bytes()
        except OSError:
            continue
        if name.startswith(b"sshd:") and f":{port}".encode() in above:
            found.append(int(folder.name))
    return found


def listeners_of(port: int) -> list[int]:
    """The sshd process that takes connections to this port."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if name.startswith(b"sshd:") and f":{port}".encode() in name:
            found.append(int(folder.name))
    return found


def test_with_several_people_only_administrators_use_this_machines_keys(machine: Target, admin: User) -> None:
    operator = User.objects.create(username="olga")
    member_add(machine.session, user=operator, added_by=admin)
    with pytest.raises(credentials.RefusedError, match="administrator"):
        credentials.agent_for(machine, operator)
    User.objects.filter(pk=admin.pk).update(is_active=False)
    alone = User.objects.get(pk=operator.pk)  # who is here is asked once for each request
    assert isinstance(credentials.agent_for(machine, alone), SshAgent)


@pytest.mark.parametrize("jump", ["ops@", "ops@gate:x", "gate:"])
def test_a_jump_host_that_is_none_is_refused(machine: Target, jump: str) -> None:
    machine.jump = jump
    with pytest.raises(credentials.RefusedError, match="jump host"):
        credentials.ssh_spec(machine)


def test_a_jump_host_needs_its_own_accepted_key(machine: Target, admin: User) -> None:
    machine.jump = "ops@gate:2222"
    spec = credentials.ssh_spec(machine).jump
    assert spec
    assert (spec.host, spec.port, spec.user, spec.host_keys) == ("gate", 2222, "ops", ())
