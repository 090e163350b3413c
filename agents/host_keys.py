"""SSH host keys: their form, the known_hosts files that hold accepted ones, and how to fetch a new one.

known_hosts files are OpenSSH's (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Keys of certificate authorities are ignored: a
person accepts a machine's own key.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

import asyncssh

from agents.agent import Unreachable

DEFAULT_PORT = 22
# In the order of the request; a pinned key's own algorithms come first.
ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key. line: "ssh-ed25519 AAAA…", without host and comment. fingerprint: SHA256:…"""

    line: str
    algorithm: str
    fingerprint: str

    @classmethod
    def from_line(cls, line: str) -> HostKey:
        """Raises ValueError when this is no public key."""
        try:
            return _host_key(asyncssh.import_public_key(line.strip()))
        except asyncssh.KeyImportError as error:
            raise ValueError(f"This is not a public key: {error}") from error

    @property
    def key(self) -> asyncssh.SSHKey:
        return asyncssh.import_public_key(self.line)


def from_key(key: asyncssh.SSHKey) -> HostKey:
    return _host_key(key)


def pinned_in(known_hosts: str, host: str, port: int = DEFAULT_PORT) -> tuple[HostKey, ...]:
    """The keys of a known_hosts text for this host and port, without the revoked ones.

    An unreadable line is skipped; it pins nothing.
    """
    readable = "\n".join(line for line in known_hosts.splitlines() if _is_entry(line))
    number = port if port != DEFAULT_PORT else None
    keys, _, bad, *_ = asyncssh.import_known_hosts(readable).match(host, "", number)
    revoked = {_host_key(key).line for key in bad}
    by_line = {pin.line: pin for pin in map(_host_key, keys)}
    return tuple(pin for line, pin in by_line.items() if line not in revoked)


def _is_entry(line: str) -> bool:
    try:
        asyncssh.import_known_hosts(line)
    except (ValueError, asyncssh.KeyImportError):
        return False
    return True


async def fetch_host_key(
    host: str, port: int = DEFAULT_PORT, *, tunnel: asyncssh.SSHClientConnection | None = None, timeout_s: float = 10.0
) -> HostKey:
    """The key a machine shows now. It proves nothing: a person compares the fingerprint.

    Raises Unreachable.
    """
    try:
        key = await asyncio.wait_for(
            asyncssh.get_server_host_key(host, port, tunnel=tunnel, config=None, server_host_key_algs=ALGORITHMS),
            timeout_s,
        )
    except (OSError, asyncssh.Error, TimeoutError) as error:
        raise Unreachable(f"{host}:{port} showed no host key: {why(error)}.") from error
    if key is None:
        raise Unreachable(f"{host}:{port} showed no host key.")
    return _host_key(key)


def why(error: BaseException) -> str:
    """The reason in words, also for errors without a text."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)  # asyncio's own text omits the reason
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")


def _host_key(key: asyncssh.SSHKey) -> HostKey:
    algorithm, body, *_ = key.export_public_key().decode("ascii").split()
    return HostKey(f"{algorithm} {body}", algorithm, key.get_fingerprint())
