"""Runs scripts over SSH: one connection per machine, one channel for the script, one more to end it.

Host keys are pinned on every machine along the way; no connection opens without one. Our own ssh agent is
never forwarded: root on a machine could use it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncssh

from agents.agent import (
    AgentError,
    AuthenticationFailed,
    Ending,
    HostKeyChanged,
    HostKeyUnknown,
    Reason,
    ScriptNotTaken,
    Unreachable,
    Watch,
)
from agents.connections import Connections, Lease
from agents.host_keys import ALGORITHMS, HostKey, from_key, why
from agents.supervision import SWEEP, new_mark, read_sweep, supervise, sweep_script, whole_lines, wrap_payload

_CHUNK = 65536
_SWEEP_S = 15.0
_MOST_SWEPT = 65536  # bytes; it prints two lines
_RECONNECT_S = 5.0
_OPEN_CHANNEL_S = 5.0  # a connection that others used before is given up after that
_CLOSE_S = 2.0
_KEEPALIVES = 3  # unanswered, one after the other: the connection is dead


@dataclass(frozen=True, slots=True)
class SshSpec:
    """Where a target is, and the credentials that open it.

    host_keys: the accepted keys; none means the connection ends with HostKeyUnknown. identities:
    private key files. private_keys: private keys as text, from a store; certificates: OpenSSH's for
    those, as text. own_keys: the operator's own ssh agent and ~/.ssh keys may be tried as well.
    read_config: ~/.ssh/config counts. jump: the machine to go through, with its own accepted keys.
    """

    host: str
    port: int = 22
    user: str | None = None
    host_keys: tuple[HostKey, ...] = ()
    identities: tuple[str, ...] = ()
    private_keys: tuple[str, ...] = field(default=(), repr=False)
    certificates: tuple[str, ...] = ()
    passphrase: str | None = field(default=None, repr=False)
    own_keys: bool = True
    read_config: bool = False
    jump: SshSpec | None = None
    connect_timeout_s: float = 10.0
    keepalive_s: float = 5.0


@asynccontextmanager
async def connect(spec: SshSpec) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """An open connection, through the jump hosts if any. Raises AgentError."""
    async with AsyncExitStack() as stack:
        tunnel = await stack.enter_async_context(connect(spec.jump)) if spec.jump else None
        connection = await _open(spec, tunnel)
        stack.push_async_callback(_close, connection)
        yield connection


async def _close(connection: asyncssh.SSHClientConnection) -> None:
    """Waits a short while only: a machine may have stopped reading."""
    connection.close()
    try:
        async with asyncio.timeout(_CLOSE_S):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()


def unshared() -> Connections[SshSpec, asyncssh.SSHClientConnection]:
    return Connections(connect)


@dataclass(frozen=True, slots=True)
class SshAgent:
    """An agents.agent.Agent for a machine with an SSH server and a POSIX sh.

    connections: the open connections of the event loop that runs this; by default none stays open.
    """

    spec: SshSpec
    connections: Connections[SshSpec, asyncssh.SSHClientConnection] = field(default_factory=unshared, repr=False)

    async def reach(self) -> None:
        await self.connections.reach(self.spec)

    async def run(self, script: str, watch: Watch, *, sweep: str = SWEEP) -> Ending:
        mark = new_mark()
        async with self.connections.lease(self.spec) as lease:
            connection, process = await self._open_channel(lease, mark)
            _send_script(process, script)
            try:
                reason, stderr = await supervise(_SshChannel(process), watch)
            except BaseException:
                await _sweep_run(connection, mark, sweep)
                raise
            if reason is Reason.FINISHED:
                return Ending(_exit_code(process), reason, stderr)
            leftover = None if reason is Reason.LOST else await _sweep_run(connection, mark, sweep)
        if leftover is None:
            leftover = await self._sweep_anew(mark, sweep)
        return Ending(None, reason, stderr, leftover)

    async def _open_channel(
        self, lease: Lease[asyncssh.SSHClientConnection], mark: str
    ) -> tuple[asyncssh.SSHClientConnection, asyncssh.SSHClientProcess[bytes]]:
        """A channel. A connection used before may be half open: after a short wait a new one replaces it."""
        if lease.reused:
            try:
                async with asyncio.timeout(_OPEN_CHANNEL_S):
                    return lease.connection, await _start_shell(lease.connection, mark)
            except (TimeoutError, Unreachable):
                await self.connections.renew(self.spec, lease)
        return lease.connection, await _start_shell(lease.connection, mark)

    async def run_payload(self, program: bytes, argv: Sequence[str], *, interpreter: str, watch: Watch) -> Ending:
        script = wrap_payload(program, argv, interpreter=interpreter, timeout_s=watch.timeout_s)
        return await self.run(script, watch, sweep=sweep_script(interpreter))

    async def _sweep_anew(self, mark: str, sweep: str) -> bool | None:
        """One try over a new connection, because the old one is lost or silent."""
        try:
            async with asyncio.timeout(_RECONNECT_S), connect(self.spec) as connection:
                return await _sweep_run(connection, mark, sweep)
        except (AgentError, TimeoutError):
            return None


async def _open(spec: SshSpec, tunnel: asyncssh.SSHClientConnection | None) -> asyncssh.SSHClientConnection:
    where = f"{spec.host}:{spec.port}"
    key_check = _KeyCheck()
    try:
        return await asyncssh.connect(
            spec.host,
            spec.port,
            tunnel=tunnel,
            client_factory=lambda: key_check,
            known_hosts=([pin.key for pin in spec.host_keys], [], []),
            server_host_key_algs=_algorithms(spec.host_keys),
            connect_timeout=spec.connect_timeout_s,
            login_timeout=spec.connect_timeout_s,
            keepalive_interval=spec.keepalive_s,
            keepalive_count_max=_KEEPALIVES,
            agent_forwarding=False,
            **_credentials(spec),
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise _host_key_error(where, spec.host_keys, key_check.pin) from error
    except asyncssh.PermissionDenied as error:
        raise AuthenticationFailed(
            f"{where} refused every key that was offered for {spec.user or 'this user'}. Add the "
            f"public key to ~/.ssh/authorized_keys there, or choose another key."
        ) from error
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise AuthenticationFailed(f"A private key could not be read: {why(error)}.") from error
    except (OSError, asyncssh.Error, TimeoutError) as error:
        raise Unreachable(
            f"No connection to {where}: {why(error)}. Check address, port and firewall, and that "
            f"an SSH server runs there."
        ) from error


class _KeyCheck(asyncssh.SSHClient):
    """Remembers the host key that is not among the accepted ones, and refuses it."""

    def __init__(self) -> None:
        self.pin: HostKey | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.pin = from_key(key)
        return False


def _host_key_error(where: str, accepted: tuple[HostKey, ...], server_key: HostKey | None) -> AgentError:
    if server_key is None:
        return Unreachable(f"{where} shows a host key of a kind that cannot be pinned.")
    if not accepted:
        return HostKeyUnknown(where, server_key.fingerprint, server_key.line)
    expected = tuple(pin.fingerprint for pin in accepted)
    return HostKeyChanged(where, expected, server_key.fingerprint, server_key.line)


def _algorithms(accepted: tuple[HostKey, ...]) -> list[str]:
    """The accepted keys' algorithms first, so that a server with several keys shows the accepted one."""
    kinds = {pin.algorithm.replace("ssh-rsa", "rsa-sha2") for pin in accepted}
    return sorted(ALGORITHMS, key=lambda name: not any(name.startswith(kind) for kind in kinds))


def _credentials(spec: SshSpec) -> dict[str, Any]:
    """The options of asyncssh.connect that identify us. A missing option means asyncssh's default:
    the operator's agent, ~/.ssh keys and ~/.ssh/config."""
    options: dict[str, Any] = {}
    keys: list[object] = [*spec.identities]
    keys += [asyncssh.import_private_key(text, spec.passphrase) for text in spec.private_keys]
    if keys or not spec.own_keys:
        options["client_keys"] = keys or None
    if spec.certificates:
        options["client_certs"] = [asyncssh.import_certificate(text) for text in spec.certificates]
    if spec.passphrase is not None:
        options["passphrase"] = spec.passphrase
    if not spec.own_keys:
        options["agent_path"] = None
    if not spec.read_config:
        options["config"] = None
    if spec.user is not None:
        options["username"] = spec.user
    return options


async def _start_shell(connection: asyncssh.SSHClientConnection, mark: str) -> asyncssh.SSHClientProcess[bytes]:
    try:
        return await connection.create_process(f"exec env PEERPATH_RUN={mark} sh -s -- --watch-stdin", encoding=None)
    except (OSError, asyncssh.Error) as error:
        raise Unreachable(f"The server opened no session: {why(error)}.") from error


def _send_script(process: asyncssh.SSHClientProcess[bytes], script: str) -> None:
    """Raises ScriptNotTaken when the server closed the channel; then nothing was sent, and nothing is to be swept."""
    try:
        process.stdin.write(whole_lines(script))
    except (OSError, asyncssh.Error) as error:
        process.close()
        raise ScriptNotTaken from error


async def _sweep_run(connection: asyncssh.SSHClientConnection, mark: str, sweep: str) -> bool | None:
    """Ends the processes left by a run, over a second channel. Returns whether some could not be ended."""
    assert re.fullmatch(r"[0-9a-f]+", mark)
    try:
        # The limit covers everything: a machine that stopped answering does not even open the channel.
        async with asyncio.timeout(_SWEEP_S):
            process = await connection.create_process(f"exec sh -s -- {mark}", stderr=asyncssh.DEVNULL, encoding=None)
            try:
                process.stdin.write(sweep.encode())
                process.stdin.write_eof()
                stdout = await _at_most(process.stdout, _MOST_SWEPT)
            finally:
                process.close()
    except (OSError, asyncssh.Error, TimeoutError):
        return None
    return read_sweep(stdout, mark, sweep)


async def _at_most(stream: asyncssh.SSHReader[bytes], most: int) -> bytes:
    """The stream up to its end or to `most` bytes: an untrusted machine must not fill our memory."""
    head = bytearray()
    while len(head) < most and (chunk := await stream.read(most)):
        head += chunk
    return bytes(head)


def _exit_code(process: asyncssh.SSHClientProcess[bytes]) -> int | None:
    """None: still running, or lost. Negative: ended by a signal."""
    return process.exit_status


@dataclass(frozen=True, slots=True)
class _SshChannel:
    process: asyncssh.SSHClientProcess[bytes]

    async def read(self) -> bytes:
        return await self._read_stream(self.process.stdout)

    async def read_error(self) -> bytes:
        return await self._read_stream(self.process.stderr)

    async def _read_stream(self, stream: asyncssh.SSHReader[bytes]) -> bytes:
        try:
            return await stream.read(_CHUNK)
        except (OSError, asyncssh.Error):
            return b""

    def exit_code(self) -> int | None:
        return _exit_code(self.process)

    async def closed(self) -> None:
        await self.process.wait_closed()
