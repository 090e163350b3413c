"""How a target becomes a connection: which keys may be used for it, and which host key it must show.

A stored key is used by its owner, or by everyone where an administrator shared it. Without one: one
person on one machine has their own agent and ~/.ssh; as soon as several people share an installation,
the keys of the machine it runs on are the administrators' alone.
"""

from typing import Any

import asyncssh

from agents.agent import Agent
from agents.connections import Connections
from agents.host_keys import HostKey
from agents.local import LocalAgent
from agents.ssh import SshAgent, SshSpec, unshared
from webapp import sealing
from webapp.accounts.models import User
from webapp.records import stored_keys
from webapp.records.models import DiagnosisSession, PinnedHostKey, StoredKey, Target
from webapp.records.models.session import may_operate
from webapp.runs.allowed_addresses import may_be_reached

KeptConnections = Connections[SshSpec, asyncssh.SSHClientConnection]


class RefusedError(Exception):
    """This run may not connect; the message says why and what to do, for people."""


def agent_for(target: Target, asked_by: User, connections: KeptConnections | None = None) -> Agent:
    """The agent that reaches this target for this person. Raises RefusedError.

    connections: where open ones are kept; by default none are.
    """
    if not may_operate(asked_by, target.session):
        raise RefusedError(f"{asked_by.username} may not reach machines of this session any more.")
    if target.agent == "local":
        if not asked_by.is_staff:
            raise RefusedError("Only an administrator may run something on this machine itself.")
        return LocalAgent()
    refuse_unless_keys_are_theirs(target, asked_by)
    return SshAgent(ssh_spec(target), connections or unshared())


def refuse_unless_keys_are_theirs(target: Target, user: User) -> None:
    """Raises RefusedError for those who may not connect as this target says. This holds without a key, too: the
    answer of the machine, and the list of key files here, are for the owner of this machine."""
    if may_use_own_keys(user):
        return
    if target.stored_key is None or target.identity_file:
        raise RefusedError(
            "Several people use this installation, so only an administrator may connect with this"
            " machine’s own SSH keys. Store a key of yours and choose it, or run the script there and"
            " paste its output."
        )
    if not _may_use(target.stored_key, user):
        raise RefusedError(
            f"The key “{target.stored_key}” is {target.stored_key.owner.username}'s. Add the machine with"
            " a key of yours, or ask them to start it."
        )
    first = target.jump.split(",")[0].rpartition("@")[2] if target.jump else target.host
    if not may_be_reached(first):
        raise RefusedError(
            f"{first} is an address of the machine that runs Peerpath; only an administrator may connect to it."
        )


def may_connect(user: User) -> bool:
    """Whether there is a key this person could add a machine with."""
    return may_use_own_keys(user) or StoredKey.objects.usable_by(user).exists()


def may_use_own_keys(user: User) -> bool:
    return user.is_active and (user.is_staff or user.is_alone)


def _may_use(key: StoredKey, user: User) -> bool:
    return user.is_active and (key.shared or key.owner_id == user.pk)


def ssh_spec(target: Target) -> SshSpec:
    """Without an accepted host key the connection ends with HostKeyUnknown. Raises RefusedError.

    Every machine on the way is entered with the target's stored key, or with the operator's own.
    """
    entering = _stored_credentials(target.stored_key) if target.stored_key else {}
    through: SshSpec | None = None
    for hop in target.jump.split(",") if target.jump else ():
        through = _jump_spec(target.session, hop, through, entering)
    own = {"identities": (target.identity_file,) if target.identity_file else (), "own_keys": not target.identity_file}
    return SshSpec(
        host=target.host,
        port=target.port,
        user=target.user or None,
        host_keys=_accepted_host_keys(target.session, target.host, target.port),
        jump=through,
        **(entering or own),
    )


def _stored_credentials(key: StoredKey) -> dict[str, Any]:
    try:
        opened = stored_keys.key_open(key)
    except sealing.SealError as error:
        raise RefusedError(str(error)) from None
    return {
        "private_keys": (opened.private_key,),
        "passphrase": opened.passphrase,
        "certificates": (opened.certificate,) if opened.certificate else (),
        "own_keys": False,
    }


def _jump_spec(session: DiagnosisSession, jump: str, through: SshSpec | None, entering: dict[str, Any]) -> SshSpec:
    """A machine in between, with its own accepted key."""
    user, _, address = jump.strip().rpartition("@")
    host, _, port = address.rpartition(":") if address.count(":") == 1 else (address, "", "22")
    if not host or not port.isdecimal():
        raise RefusedError(f"{jump!r} is no jump host; write user@host:port.")
    accepted = _accepted_host_keys(session, host, int(port))
    return SshSpec(host=host, port=int(port), user=user or None, host_keys=accepted, jump=through, **entering)


def _accepted_host_keys(session: DiagnosisSession, host: str, port: int) -> tuple[HostKey, ...]:
    pins = PinnedHostKey.objects.filter(session=session, host=host, port=port)
    return tuple(HostKey.from_line(line) for line in pins.values_list("key_line", flat=True))
