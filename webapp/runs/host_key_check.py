"""First contact: the next host key on the way to a target that a person has to accept, hop by hop."""

import asyncio
from dataclasses import dataclass

import asyncssh
from django.db import transaction

from agents.host_keys import HostKey, fetch_host_key
from agents.ssh import SshSpec, connect
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Event, PinnedHostKey, Target
from webapp.runs.credentials import refuse_unless_keys_are_theirs, ssh_spec

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Contact:
    """One hop's key as it is shown now. through: the jump host it was asked through."""

    host: str
    port: int
    host_key: HostKey
    accepted: tuple[HostKey, ...]
    through: str = ""

    @property
    def changed(self) -> bool:
        return bool(self.accepted) and not self.trusted

    @property
    def trusted(self) -> bool:
        return self.host_key.line in {pin.line for pin in self.accepted}


def first_contact(target: Target, asked_by: User) -> Contact:
    """The first hop whose key nobody accepted or that changed; the target itself when all are fine.

    It logs in to jump hosts, so the caller must be allowed to use the target's keys. Raises AgentError when a hop
    shows no key, credentials.RefusedError for anyone else and for a malformed jump host.
    """
    refuse_unless_keys_are_theirs(target, asked_by)
    return asyncio.run(_contact(ssh_spec(target)))


def host_key_pin(session: DiagnosisSession, contact: Contact, user: User) -> None:
    """From now on the hop has to show this key."""
    key = contact.host_key
    with transaction.atomic():
        PinnedHostKey.objects.get_or_create(
            session=session,
            host=contact.host,
            port=contact.port,
            defaults={"key_line": key.line, "fingerprint": key.fingerprint, "accepted_by": user},
        )
        about = {"host": contact.host, "fingerprint": key.fingerprint}
        Event.record(session, "host_key_accepted", user, **about)


async def _contact(spec: SshSpec) -> Contact:
    if spec.jump is None:
        return await _presented_key(spec, None)
    before = await _contact(spec.jump)
    if not before.trusted:
        return before
    async with connect(spec.jump) as tunnel:
        return await _presented_key(spec, tunnel)


async def _presented_key(spec: SshSpec, tunnel: asyncssh.SSHClientConnection | None) -> Contact:
    key = await fetch_host_key(spec.host, spec.port, tunnel=tunnel, timeout_s=TIMEOUT_S)
    return Contact(spec.host, spec.port, key, spec.host_keys, spec.jump.host if spec.jump else "")
