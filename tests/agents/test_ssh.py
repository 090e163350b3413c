"""The SSH agent against a real OpenSSH server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import asyncssh
import pytest

from agents import ssh
from agents.agent import (
    AuthenticationFailed,
    HostKeyChanged,
    HostKeyUnknown,
    Reason,
    ScriptNotTaken,
    Unreachable,
    Watch,
)
from agents.framing import read_bundle
from agents.host_keys import fetch_host_key
from agents.ssh import SshAgent
from tests.agents.asking import NONCE, probe_of, run, run_payload, script_of
from tests.agents.conftest import Sshd, free_port
from tests.waiting import OWN, wait_until

pytestmark = pytest.mark.service
Alive = Callable[[str], list[int]]


def test_a_script_is_answered_and_read_back(sshd: Sshd) -> None:
    ending, raw = run(SshAgent(sshd.spec()), script_of(probe_of("a", "echo hello; echo no >&2; exit 7")))
    bundle = read_bundle(raw, nonce=NONCE)
    assert (ending.exit_code, ending.reason) == (0, Reason.FINISHED)
    assert bundle.complete
    assert bundle.hash_matches
    (frame,) = bundle.frames
    assert (frame.raw_stdout, frame.raw_stderr, frame.output.exit_code) == (b"hello\n", b"no\n", 7)


def test_a_key_the_server_does_not_know_is_refused(sshd: Sshd) -> None:
    spec = sshd.spec(identities=(str(sshd.folder / "stranger_key"),))
    with pytest.raises(AuthenticationFailed, match="authorized_keys"):
        run(SshAgent(spec), script_of())


def test_an_identity_file_that_is_not_there_says_so(sshd: Sshd) -> None:
    with pytest.raises((AuthenticationFailed, Unreachable), match="No such file"):
        run(SshAgent(sshd.spec(identities=("/nowhere/key",))), script_of())


def test_a_stored_private_key_opens_as_a_file_does(sshd: Sshd) -> None:
    text = (sshd.folder / "user_key").read_text()
    spec = sshd.spec(identities=(), private_keys=(text,))
    assert text not in repr(spec)
    ending, _ = run(SshAgent(spec), script_of(probe_of("a", "true")))
    assert ending.exit_code == 0


def test_a_closed_port_is_unreachable(ssh_keys: Path) -> None:
    server = Sshd(ssh_keys, free_port())
    with pytest.raises(Unreachable, match="refused"):
        run(SshAgent(server.spec()), script_of())


def test_an_unknown_host_key_is_shown_and_not_trusted(sshd: Sshd) -> None:
    with pytest.raises(HostKeyUnknown) as caught:
        run(SshAgent(sshd.spec(host_keys=())), script_of())
    assert caught.value.fingerprint == sshd.pin().fingerprint
    assert caught.value.line == sshd.pin().line


def test_a_changed_host_key_blocks(sshd: Sshd) -> None:
    sshd.stop()
    sshd.start("other_host_key")
    with pytest.raises(HostKeyChanged) as caught:
        run(SshAgent(sshd.spec()), script_of())
    assert caught.value.expected == (sshd.pin().fingerprint,)
    assert caught.value.actual == sshd.pin("other_host_key").fingerprint


def test_a_host_key_can_be_fetched_before_it_is_accepted(sshd: Sshd) -> None:
    assert asyncio.run(fetch_host_key("127.0.0.1", sshd.port)) == sshd.pin()


def test_a_jump_host_has_its_own_pinned_key(sshd: Sshd) -> None:
    through = sshd.spec(jump=sshd.spec())
    ending, _ = run(SshAgent(through), script_of(probe_of("a", "true")))
    assert ending.exit_code == 0
    with pytest.raises(HostKeyUnknown):
        run(SshAgent(sshd.spec(jump=sshd.spec(host_keys=()))), script_of())


def test_cancelling_ends_grandchildren_too(sshd: Sshd, alive: Alive) -> None:
    probe = probe_of("a", f"sleep 4711.{OWN} & setsid sleep 4711.{OWN} & sleep 4711.{OWN}", timeout_s=600)
    ending, _ = run(SshAgent(sshd.spec()), script_of(probe), cancelled=lambda: len(alive(f"sleep 4711.{OWN}")) >= 4)
    assert (ending.reason, ending.leftover, ending.exit_code) == (Reason.CANCELLED, False, None)
    assert not alive(f"sleep 4711.{OWN}")


def test_the_whole_run_has_a_time_limit(sshd: Sshd, alive: Alive) -> None:
    slow = probe_of("a", f"sleep 4712.{OWN}", timeout_s=600, slow=True)
    ending, raw = run(SshAgent(sshd.spec()), script_of(slow), timeout_s=1.0)
    assert (ending.reason, ending.leftover) == (Reason.TIMED_OUT, False)
    assert not read_bundle(raw).complete
    assert not alive(f"sleep 4712.{OWN}")


def test_a_server_that_dies_leaves_nothing_running(sshd: Sshd, alive: Alive) -> None:
    probe = probe_of("a", f"setsid sleep 4713.{OWN} & sleep 4713.{OWN}", timeout_s=600)
    quick = probe_of("b", "echo kept")
    killed: list[int] = []

    def kill_when_running() -> bool:
        if not killed and len(alive(f"sleep 4713.{OWN}")) >= 2:
            killed.append(1)
            sshd.stop()
        return False

    ending, raw = run(SshAgent(sshd.spec()), script_of(quick, probe), cancelled=kill_when_running)
    assert ending.reason is Reason.LOST
    assert ending.leftover is None, "nobody could look, so nobody knows"
    assert read_bundle(raw).frames[0].raw_stdout == b"kept\n"
    wait_until(lambda: not alive(f"sleep 4713.{OWN}"))


def test_a_listener_that_fails_ends_the_run(sshd: Sshd, alive: Alive) -> None:
    def fail(chunk: bytes) -> None:
        raise ZeroDivisionError

    probe = probe_of("a", f"sleep 4714.{OWN}", timeout_s=600)
    with pytest.raises(ZeroDivisionError):
        run(SshAgent(sshd.spec()), script_of(probe), on_output=fail)
    assert not alive(f"sleep 4714.{OWN}")


def test_a_payload_runs_from_a_folder_that_is_gone_afterwards(sshd: Sshd) -> None:
    program = "import os, sys; print(os.getcwd(), oct(os.stat('.').st_mode), *sys.argv[1:])"
    ending, raw = run_payload(SshAgent(sshd.spec()), program, ["it's", "$(id)"])
    folder, mode, *argv = raw.decode().split()
    assert (ending.exit_code, mode, argv) == (0, "0o40700", ["it's", "$(id)"])
    assert not Path(folder).exists()


def test_a_payload_notices_that_its_caller_is_gone(sshd: Sshd, tmp_path: Path) -> None:
    note = tmp_path / "note"
    program = (
        "import sys, pathlib; print('up', flush=True); rest = sys.stdin.buffer.read();"
        f"pathlib.Path({str(note)!r}).write_text(repr(rest))"
    )
    heard: list[bytes] = []

    async def lose() -> Reason:
        stopped = False

        def tick() -> bool:
            nonlocal stopped
            if b"up" in b"".join(heard) and not stopped:
                stopped = True
                sshd.stop()
            return False

        ending = await SshAgent(sshd.spec()).run_payload(
            program.encode(), [], interpreter="python3", watch=Watch(heard.append, 30, tick)
        )
        return ending.reason

    assert asyncio.run(lose()) is Reason.LOST
    wait_until(lambda: note.exists() and note.read_text() == "b''")


def test_a_payload_that_does_not_notice_is_ended_with_what_left_it(sshd: Sshd, alive: Alive) -> None:
    program = f"import subprocess; subprocess.Popen(['setsid', 'sleep', '4716.{OWN}']).wait()"
    killed: list[int] = []

    def kill_when_running() -> bool:
        if not killed and alive(f"sleep 4716.{OWN}"):
            killed.append(1)
            sshd.stop()
        return False

    ending, _ = run_payload(SshAgent(sshd.spec()), program, cancelled=kill_when_running)
    assert ending.reason is Reason.LOST
    wait_until(lambda: not alive(f"sleep 4716.{OWN}"))


def test_a_cancelled_payload_is_ended_with_its_children(sshd: Sshd, alive: Alive) -> None:
    program = f"import subprocess; subprocess.run(['sleep', '4715.{OWN}'])"
    ending, _ = run_payload(SshAgent(sshd.spec()), program, cancelled=lambda: bool(alive(f"sleep 4715.{OWN}")))
    assert (ending.reason, ending.leftover) == (Reason.CANCELLED, False)
    assert not alive(f"sleep 4715.{OWN}")


def test_a_machine_that_prints_without_end_does_not_fill_our_memory(ssh_keys: Path) -> None:
    sent = [0, 0]  # bytes in the run's channel, and in the one that ends what is left

    async def flood(process: asyncssh.SSHServerProcess[bytes]) -> None:
        channel = min(process.command is not None and "PEERPATH_RUN" not in process.command, 1)
        while not process.stdout.is_closing():
            process.stdout.write(b"x" * 65536)
            sent[channel] += 65536
            await process.stdout.drain()

    async def asked() -> Reason:
        server = await asyncssh.listen(
            "127.0.0.1",
            server_host_keys=[str(ssh_keys / "host_key")],
            authorized_client_keys=str(ssh_keys / "user_key.pub"),
            process_factory=flood,
            encoding=None,
        )
        async with server:
            agent = SshAgent(Sshd(ssh_keys, server.get_port()).spec())
            ending = await agent.run(":", Watch(lambda _: None, 60, lambda: True))
        assert ending.leftover is None
        return ending.reason

    assert asyncio.run(asked()) is Reason.CANCELLED, "a flood that nobody stops runs into the limit of its time"
    assert 0 < sent[1] < 2**24


def _close_at_once(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.exit(1)


def _end_the_input(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.channel.close()


def _end_the_connection(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.channel.get_connection().abort()


@pytest.mark.parametrize("ends", [_close_at_once, _end_the_input, _end_the_connection])
def test_a_session_that_ends_before_the_script_is_said_in_one_sentence(
    ssh_keys: Path, ends: Callable[[asyncssh.SSHServerProcess[bytes]], None]
) -> None:
    """Whether the end arrives before the script is sent or after is chance: both are told, and nothing else."""

    async def outcome() -> str:
        server = await asyncssh.listen(
            "127.0.0.1",
            server_host_keys=[str(ssh_keys / "host_key")],
            authorized_client_keys=str(ssh_keys / "user_key.pub"),
            process_factory=ends,
            encoding=None,
        )
        async with server:
            agent = SshAgent(Sshd(ssh_keys, server.get_port()).spec())
            try:
                ending = await agent.run(":\n" * 200_000, Watch(lambda _: None, 20))
            except ScriptNotTaken as error:
                return str(error)
        return ending.reason

    sentence = asyncio.run(outcome())
    assert "before it took the whole script" in sentence or sentence in {Reason.FINISHED, Reason.LOST}


def test_a_channel_that_is_closed_takes_no_script(sshd: Sshd) -> None:
    async def send() -> None:
        async with ssh.connect(sshd.spec()) as connection:
            process = await connection.create_process("exit 1", encoding=None)
            await process.wait_closed()
            ssh._send_script(process, ":")

    with pytest.raises(ScriptNotTaken, match="ended the session before it took the whole script"):
        asyncio.run(send())
