"""The states of a session that can be compared: after each change, and after each piece of evidence."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils import timezone

from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation.vm import with_vm
from webapp.records.case_facts import facts_until
from webapp.records.evidence_rows import evidence_of
from webapp.records.models import DiagnosisSession
from webapp.review.scoring import Applied

_TOKEN = re.compile(r"[et][0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """token: as addresses have it, "e1" for an epoch, "t123" for everything up to an evidence's key."""

    token: str
    title: str

    @property
    def epoch(self) -> int:
        """Of an epoch's snapshot."""
        return int(self.token[1:])


def epochs(session: DiagnosisSession, carried: Iterable[Applied]) -> list[Snapshot]:
    """The states between changes, oldest first. carried: what was carried out."""
    by_epoch: dict[int, list[int]] = {}
    for item in carried:
        by_epoch.setdefault(item.epoch, []).append(item.number)
    snapshots = [Snapshot("e0", "before any change" if session.epoch else "now")]
    for epoch in range(1, session.epoch + 1):
        numbers = ", ".join(map(str, by_epoch.get(epoch, ())))
        title = f"after decision {numbers}" if numbers else f"after change {epoch}"
        snapshots.append(Snapshot(f"e{epoch}", title))
    return snapshots


def times(session: DiagnosisSession) -> list[Snapshot]:
    """One for each minute in which something was read, oldest first."""
    snapshots: dict[str, Snapshot] = {}
    for evidence in evidence_of(session):
        minute = f"{timezone.localtime(evidence.created_at):%-d %b %Y %H:%M}"
        snapshots[minute] = Snapshot(f"t{evidence.pk}", f"read by {minute}")
    return list(snapshots.values())


def facts_at(session: DiagnosisSession, tokens: Sequence[str]) -> list[Facts] | None:
    """Everything known at each of these states; None when a token is none."""
    if not all(_TOKEN.fullmatch(token) for token in tokens):
        return None
    states = [(token[0], int(token[1:])) for token in tokens]
    known = facts_until(session, [number if kind == "t" else None for kind, number in states])
    return [
        with_vm(facts if kind == "t" else until_epoch(facts, number), session.vmid)
        for facts, (kind, number) in zip(known, states, strict=True)
    ]


def until_epoch(facts: Facts, epoch: int) -> Facts:
    """What a person says has no epoch of its own, and counts always."""
    every = [item for group in facts.readings.values() for item in group]
    of_people = [replace(i, epoch=0) for i in every if i.reading.fact_id.startswith("user.")]
    return Facts.of([*of_people, *(i for i in every if i.epoch <= epoch)])
