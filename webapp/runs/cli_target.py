"""ssh:// and local: sources of the command line: how they become an agent, and one run on it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agents.agent import Agent, Ending, Reason, Unreachable, Watch
from agents.framing import clean, read_bundle
from agents.host_keys import DEFAULT_PORT, pinned_in
from agents.local import LocalAgent
from agents.ssh import SshAgent, SshSpec

KNOWN_HOSTS = Path("~/.ssh/known_hosts")
# All probes together; each has its own limit on the target as well.
COLLECT_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Keys:
    """identity: a private key file, else the operator's own. known_hosts: whose host keys count."""

    identity: Path | None = None
    known_hosts: Path | None = None


def agent_of(source: str, keys: Keys) -> Agent:
    """The agent of "local:" or "ssh://user@host:port".

    Raises ValueError for another form, Unreachable when a key file is not there.
    """
    if source == "local:":
        return LocalAgent()
    parts = urlsplit(source)
    if parts.password:  # the message does not repeat it
        raise ValueError("A password in the address would show in the process list; use a key.")
    try:
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError as error:
        raise ValueError(f"{source}: the port is a number up to 65535") from error
    if parts.scheme != "ssh" or not host or parts.path.strip("/"):
        raise ValueError(f"{source}: write ssh://user@host:port or local:")
    if keys.identity and not keys.identity.expanduser().is_file():
        raise Unreachable(f"{keys.identity}: there is no such private key file.")
    return SshAgent(
        SshSpec(
            host=host,
            port=port,
            user=unquote(parts.username) if parts.username else None,
            host_keys=pinned_in(_read(keys.known_hosts), host, port),
            identities=(str(keys.identity.expanduser()),) if keys.identity else (),
            own_keys=keys.identity is None,
            read_config=True,
        )
    )


def _read(known_hosts: Path | None) -> str:
    path = (known_hosts or KNOWN_HOSTS).expanduser()
    if known_hosts and not path.is_file():
        raise Unreachable(f"{known_hosts}: there is no such known_hosts file.")
    return path.read_text(errors="replace") if path.is_file() else ""


def collect(agent: Agent, script: str) -> bytes:
    """What the script printed, as far as it came. Raises AgentError, also when no probe answered."""
    pieces: list[bytes] = []
    ending = asyncio.run(agent.run(script, Watch(pieces.append, COLLECT_TIMEOUT_S)))
    raw = b"".join(pieces)
    if not read_bundle(raw).frames:
        raise Unreachable(_silence(ending, raw))
    return raw


def _silence(ending: Ending, raw: bytes) -> str:
    """Why no probe answered. What a login shell printed instead often says it."""
    if ending.reason is not Reason.FINISHED:
        how = {Reason.LOST: "the connection was lost"}.get(ending.reason, f"the run {ending.reason}")
        return f"No probe was answered: {how.replace('_', ' ')}. Try again."
    text = " ".join(clean(ending.stderr + b"\n" + raw).split())[:200]
    return f"The machine let us in, but ran no script. It said: {text or 'nothing'}"
