"""The states of a session that can be compared: after each change, and after each piece of evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils import timezone

from webapp.diagnosis.facts import Facts
from webapp.diagnosis.matching import with_vm
from webapp.review.scoring import applied
from webapp.triage.case_facts import facts_of
from webapp.triage.models import DiagnosisSession


@dataclass(frozen=True, slots=True)
class Snapshot:
    """token: as addresses have it, "e1" for an epoch, "t123" for everything up to an evidence's key."""

    token: str
    title: str

    @property
    def epoch(self) -> int:
        """Of an epoch's snapshot."""
        return int(self.token[1:])


def epochs(session: DiagnosisSession) -> list[Snapshot]:
    """The states between changes, oldest first."""
    by_epoch: dict[int, list[int]] = {}
    for item in applied(session):
        by_epoch.setdefault(item.epoch, []).append(item.number)
    found = [Snapshot("e0", "before any change" if session.epoch else "now")]
    for epoch in range(1, session.epoch + 1):
        numbers = ", ".join(map(str, by_epoch.get(epoch, ())))
        title = f"after decision {numbers}" if numbers else f"after change {epoch}"
        found.append(Snapshot(f"e{epoch}", title))
    return found


def times(session: DiagnosisSession) -> list[Snapshot]:
    """One for each minute in which something was read, oldest first."""
    found: dict[str, Snapshot] = {}
    rows = session.evidence.order_by("id").values_list("pk", "created_at")
    for key, at in rows:
        minute = f"{timezone.localtime(at):%-d %b %Y %H:%M}"
        found[minute] = Snapshot(f"t{key}", f"read by {minute}")
    return list(found.values())


def facts_at(session: DiagnosisSession, token: str) -> Facts | None:
    """Everything known at that state; None for a token that is none."""
    kind, number = token[:1], token[1:]
    if kind not in {"e", "t"} or not number.isdecimal() or len(number) > 15:
        return None
    if kind == "t":
        return with_vm(facts_of(session, int(number)), session.vmid)
    return with_vm(until_epoch(facts_of(session), int(number)), session.vmid)


def until_epoch(facts: Facts, epoch: int) -> Facts:
    """What a person says has no epoch of its own, and counts always."""
    every = [item for group in facts.readings.values() for item in group]
    said = [replace(i, epoch=0) for i in every if i.reading.fact_id.startswith("user.")]
    return Facts.of([*said, *(i for i in every if i.epoch <= epoch)])
