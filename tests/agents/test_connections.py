"""Kept connections, jump hosts, certificates and frozen machines, against real OpenSSH servers."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh
import pytest

from agents.agent import AuthenticationFailed, Ending, HostKeyUnknown, Reason, Watch
from agents.connections import MOST_CHANNELS, Connections
from agents.ssh import SshAgent, SshSpec, connect
from tests.agents.asking import probe_of, script_of
from tests.agents.conftest import Sshd, free_port, make_key
from tests.waiting import LIMIT_S, OWN, wait_until

pytestmark = pytest.mark.service
Kept = Connections[SshSpec, asyncssh.SSHClientConnection]
YES = script_of(probe_of("a", "echo yes"))


@pytest.fixture
def gate(ssh_keys: Path) -> Iterator[Sshd]:
    """A second server, with another host key, in a folder of its own."""
    folder = ssh_keys / "gate"
    folder.mkdir(exist_ok=True)
    for name in ("other_host_key", "other_host_key.pub"):
        shutil.copy(ssh_keys / name, folder / name.replace("other_", ""))
    for name in ("user_key", "user_key.pub", "authorized_keys"):
        shutil.copy(ssh_keys / name, folder / name)
    server = Sshd(folder, free_port())
    server.start()
    yield server
    server.stop()


async def ask(
    spec: SshSpec, kept: Kept, script: str = YES, cancelled: Callable[[], bool] = lambda: False, timeout_s: float = 30
) -> tuple[Ending, bytes]:
    heard = bytearray()
    ending = await SshAgent(spec, kept).run(script, Watch(heard.extend, timeout_s, cancelled))
    return ending, bytes(heard)


def test_runs_at_one_machine_share_a_connection_that_closes_when_idle(sshd: Sshd) -> None:
    async def three() -> int:
        kept: Kept = Connections(connect, idle_s=0.5)
        endings = await asyncio.gather(*(ask(sshd.spec(), kept) for _ in range(2)))
        endings.append(await ask(sshd.spec(), kept))
        assert all(b"| yes" in raw and ending.exit_code == 0 for ending, raw in endings)
        busy = len(sshd.sessions())
        async with asyncio.timeout(LIMIT_S):
            while sshd.sessions():
                await asyncio.sleep(0.05)
        return busy

    busy = asyncio.run(three())
    assert 0 < busy <= 2, "one connection: a listener's child, and its own where privileges are separated"


def test_a_machine_gets_so_many_channels_and_no_more(sshd: Sshd, alive: Callable[..., list[int]]) -> None:
    script = script_of(probe_of("a", f"sleep 1.4715{OWN}", timeout_s=60))

    async def many() -> int:
        kept: Kept = Connections(connect, idle_s=5)
        runs = [asyncio.create_task(ask(sshd.spec(), kept, script)) for _ in range(9)]
        most = 0
        while not all(run.done() for run in runs):
            await asyncio.sleep(0.1)
            most = max(most, len(set(alive(f"sleep 1.4715{OWN}"))))
        assert all(run.result()[0].exit_code == 0 for run in runs)
        return most

    # Each run shows as sleep itself and as the shell that waits for it.
    assert 0 < asyncio.run(many()) <= 3 * MOST_CHANNELS


def test_a_half_open_connection_is_left_for_a_new_one(sshd: Sshd) -> None:
    """The machine went away without a word: what served the connection is frozen, a new one is served."""

    async def frozen() -> None:
        kept: Kept = Connections(connect, idle_s=60)
        await ask(sshd.spec(), kept)
        for pid in sshd.sessions():
            os.kill(pid, signal.SIGSTOP)
        ending, raw = await ask(sshd.spec(), kept)
        assert (ending.reason, ending.exit_code) == (Reason.FINISHED, 0)
        assert b"| yes" in raw

    asyncio.run(frozen())


@pytest.mark.thorough
def test_a_machine_that_freezes_during_a_run_is_lost_within_bounds(
    sshd: Sshd, alive: Callable[[str], list[int]]
) -> None:
    script = script_of(probe_of("a", f"sleep 4717.{OWN}", timeout_s=600))

    async def run() -> Ending:
        spec = sshd.spec(keepalive_s=0.5)
        asking = asyncio.create_task(ask(spec, Connections(connect), script))
        while not alive(f"sleep 4717.{OWN}"):
            await asyncio.sleep(0.05)
        for pid in [*sshd.sessions(), sshd.process.pid]:
            os.kill(pid, signal.SIGSTOP)
        ending, _ = await asking
        return ending

    ending = asyncio.run(run())
    # A few keep-alives and one try to look of 5 s; else the run's own limit ends it, and it is TIMED_OUT.
    assert (ending.reason, ending.leftover) == (Reason.LOST, None)


def test_every_machine_on_the_way_shows_its_own_pinned_key(sshd: Sshd, gate: Sshd) -> None:
    first = gate.spec()
    second = sshd.spec(jump=first)
    last = gate.spec(jump=second)
    ending, raw = asyncio.run(ask(last, Connections(connect)))
    assert (ending.exit_code, b"| yes" in raw) == (0, True)
    for at in ("first", "second", "last"):
        unknown = {name: () if name == at else None for name in ("first", "second", "last")}
        chain = gate.spec(**_pins(unknown["first"]))
        chain = sshd.spec(jump=chain, **_pins(unknown["second"]))
        chain = gate.spec(jump=chain, **_pins(unknown["last"]))
        with pytest.raises(HostKeyUnknown):
            asyncio.run(ask(chain, Connections(connect)))


def _pins(keys: tuple[()] | None) -> dict[str, object]:
    return {} if keys is None else {"host_keys": keys}


def test_a_certificate_opens_what_trusts_its_authority_alone(sshd: Sshd, tmp_path: Path) -> None:
    for name in ("authority", "person"):
        make_key(tmp_path / name)
    signing = ["ssh-keygen", "-q", "-s", f"{tmp_path}/authority", "-I", "ops", "-V", "+1h"]
    subprocess.run([*signing, "-n", getpass.getuser(), f"{tmp_path}/person.pub"], check=True)
    sshd.stop()
    sshd.start(more=f"TrustedUserCAKeys {tmp_path}/authority.pub\nAuthorizedKeysFile none")
    key = (tmp_path / "person").read_text()
    certificate = (tmp_path / "person-cert.pub").read_text()
    alone = sshd.spec(identities=(), private_keys=(key,))
    with pytest.raises(AuthenticationFailed):
        asyncio.run(ask(alone, Connections(connect)))
    ending, _ = asyncio.run(
        ask(sshd.spec(identities=(), private_keys=(key,), certificates=(certificate,)), Connections(connect))
    )
    assert ending.exit_code == 0


def test_our_own_agent_is_used_and_never_forwarded(sshd: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        # 2: no agent answers; 1: one does, and has no key yet. Its socket is there before it listens.
        wait_until(lambda: subprocess.run(["ssh-add", "-l"], capture_output=True).returncode == 1)
        subprocess.run(["ssh-add", "-q", sshd.folder / "user_key"], check=True, capture_output=True)
        script = script_of(probe_of("a", 'echo "agent [$SSH_AUTH_SOCK]"'))
        own = sshd.spec(identities=(), own_keys=True, jump=sshd.spec(identities=(), own_keys=True))
        ending, raw = asyncio.run(ask(own, Connections(connect), script))
    finally:
        agent.terminate()
        agent.wait()
    assert ending.exit_code == 0
    assert b"| agent []" in raw
