"""How a target becomes a connection: which keys may be used for it, and which host key it must show.

One person on one machine: their own agent and ~/.ssh. As soon as several people share an
installation, the keys of the machine it runs on are the administrators' alone.
"""

from __future__ import annotations

from agents.agent import Agent
from agents.host_keys import HostKey
from agents.local import LocalAgent
from agents.ssh import SshAgent, SshSpec
from webapp.accounts.models import User
from webapp.triage.models import DiagnosisSession, PinnedHostKey, Target


class RefusedError(Exception):
    """This run may not connect; the message says why and what to do, for people."""


def agent_for(target: Target, asked_by: User) -> Agent:
    """The agent that reaches this target for this person. Raises RefusedError."""
    if target.agent == "local":
        if not (asked_by.is_active and asked_by.is_staff):
            raise RefusedError("Only an administrator may run something on this machine itself.")
        return LocalAgent()
    refuse_unless_keys_are_theirs(asked_by)
    return SshAgent(ssh_spec(target))


def refuse_unless_keys_are_theirs(user: User) -> None:
    """Raises RefusedError for those who may not connect from this machine. Not even without a key:
    what answers there, and which key files lie here, is for those whose machine it is."""
    if not may_use_own_keys(user):
        raise RefusedError(
            "Several people use this installation, so only an administrator may connect with this"
            " machine's own SSH keys. Ask one, or run the script there and paste its output."
        )


def ssh_spec(target: Target) -> SshSpec:
    """Without an accepted host key the connection ends with HostKeyUnknown. Raises RefusedError."""
    jump = _jump_spec(target.session, target.jump) if target.jump else None
    return SshSpec(
        host=target.host,
        port=target.port,
        user=target.user or None,
        host_keys=_accepted(target.session, target.host, target.port),
        identities=(target.identity_file,) if target.identity_file else (),
        own_keys=not target.identity_file,
        jump=jump,
    )


def may_use_own_keys(user: User) -> bool:
    alone = not User.objects.filter(is_active=True).exclude(pk=user.pk).exists()
    return user.is_active and (user.is_staff or alone)


def _jump_spec(session: DiagnosisSession, jump: str) -> SshSpec:
    """The machine in between, with its own accepted key; it is entered with the same keys' owner."""
    user, _, address = jump.rpartition("@")
    host, _, port = address.rpartition(":") if address.count(":") == 1 else (address, "", "22")
    if not host or not port.isdecimal():
        raise RefusedError(f"{jump!r} is no jump host; write user@host:port.")
    accepted = _accepted(session, host, int(port))
    return SshSpec(host=host, port=int(port), user=user or None, host_keys=accepted)


def _accepted(session: DiagnosisSession, host: str, port: int) -> tuple[HostKey, ...]:
    pins = PinnedHostKey.objects.filter(session=session, host=host, port=port)
    return tuple(HostKey.from_line(line) for line in pins.values_list("key_line", flat=True))
