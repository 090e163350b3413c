"""Many machines of one session: adding a group, running probes on all of them, what each of them says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from agents.facts import Reading, View
from agents.host_keys import HostKey, pinned_in
from webapp.accounts.models import User
from webapp.diagnosis.compare.odd_one_out import Comparison, compared
from webapp.diagnosis.facts import Facts, Sourced
from webapp.triage import codec, runs
from webapp.triage.models import DiagnosisSession, Event, Evidence, PinnedHostKey, Run, StoredReading, Target
from webapp.triage.models.target import machine_of

MOST = 256  # machines in one session


@dataclass(frozen=True, slots=True)
class Address:
    user: str
    host: str
    port: int


class GroupError(Exception):
    """The machines cannot be added; the message is for people."""


def group_add(
    session: DiagnosisSession, user: User, addresses: Sequence[Address], known_hosts: str, values: dict[str, Any]
) -> tuple[int, int]:
    """Adds machines that are compared with each other, those that are there already left out. known_hosts:
    keys this person vouches for, as OpenSSH keeps them. values: how they are entered, for
    models.Target. Returns how many were added, and to how many of the group a key is pinned."""
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        there = {(t.user, t.host, t.port) for t in session.targets.filter(agent="ssh")}
        new = [a for a in dict.fromkeys(addresses) if (a.user, a.host, a.port) not in there]
        if session.targets.count() + len(new) > MOST:
            raise GroupError(f"A session has at most {MOST} machines.")
        for address in new:
            Target.objects.create(
                session=session,
                role=View.GUEST,
                agent="ssh",
                host=address.host,
                port=address.port,
                user=address.user,
                beside=True,
                created_by=user,
                **values,
            )
        pinned = sum(_pin(session, user, address, known_hosts) for address in addresses)
        Event.record(session, "machines_added", user, added=len(new), pinned=pinned)
    return len(new), pinned


def _pin(session: DiagnosisSession, user: User, address: Address, known_hosts: str) -> bool:
    """A key that was accepted before stays: a change needs a person who looks at it."""
    where = {"session": session, "host": address.host, "port": address.port}
    if PinnedHostKey.objects.filter(**where).exists():
        return True
    found = pinned_in(known_hosts, address.host, address.port)
    if not found:
        return False
    key: HostKey = found[0]
    PinnedHostKey.objects.create(**where, key_line=key.line, fingerprint=key.fingerprint, accepted_by=user)
    about = {"host": address.host, "fingerprint": key.fingerprint}
    Event.record(session, "host_key_accepted", user, **about)
    return True


def guests(session: DiagnosisSession) -> list[Target]:
    """Each machine once, as it was added last: twice in a comparison it would count for two. With whether
    a host key of it is accepted."""
    added = session.targets.filter(role=View.GUEST).with_pins()
    return list({target.machine: target for target in added}.values())


def run_on_all(session: DiagnosisSession, user: User) -> list[Run]:
    """The probes on every guest whose host key is accepted and that none are at work on."""
    at_work = session.runs.filter(ended_at=None, kind=runs.PROBES).select_related("target")
    busy = {run.target.machine for run in at_work}
    chosen = [
        target
        for target in guests(session)
        if target.machine not in busy and (target.agent == "local" or target.is_pinned)
    ]
    return [runs.queue_probes(session, target, user) for target in chosen]


def side_by_side(session: DiagnosisSession, targets: Sequence[Target]) -> Comparison:
    """What each machine's own runs said, in the order of the targets, of which none is a machine twice;
    one query for all of them."""
    items: dict[tuple[str, str, int], list[Sourced]] = {target.machine: [] for target in targets}
    told = session.evidence.filter(run__target__role=View.GUEST) if targets else Evidence.objects.none()
    rows = (
        StoredReading.objects.filter(evidence__in=told.values("pk"))
        .order_by("evidence_id", "id")
        .values_list(
            *("fact_id", "kind", "value", "detail", "lines", "missing"),
            *("evidence__reader", "evidence__sha256", "evidence__epoch"),
            *(f"evidence__run__target__{name}" for name in ("agent", "host", "port")),
        )
    )
    for order, (*columns, reader, sha256, epoch, agent, host, port) in enumerate(rows, 1):
        reading: Reading[object] = codec.decode(codec.Row(*columns))
        one = Sourced(reading, f"{reader}@{sha256[:12]}", epoch, order)
        items.get(machine_of(agent, host, port), []).append(one)  # one added just now has no column
    return compared({str(target): Facts.of(items[target.machine]) for target in targets})
