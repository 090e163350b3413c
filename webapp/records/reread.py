"""Applies today's parsers to stored evidence, and tells what that changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts, Sourced
from webapp.records import intake
from webapp.records.case_facts import facts_of
from webapp.records.models import DiagnosisSession, Event


@dataclass(frozen=True, slots=True)
class FactChange:
    """before, after: kinds of the reading that counts; "none" where there is no reading. The same kind
    twice: the value, or what is missing from it, changed."""

    fact_id: str
    before: str
    after: str

    @property
    def value_changed(self) -> bool:
        return self.before == self.after


@dataclass(frozen=True, slots=True)
class VerdictChange:
    hypothesis: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class SessionReread:
    """read: how much evidence was read again. changed: names of what now reads differently."""

    session: DiagnosisSession
    read: int
    changed: tuple[str, ...] = ()
    facts: tuple[FactChange, ...] = ()
    verdicts: tuple[VerdictChange, ...] = ()


def reread(session: DiagnosisSession | None = None) -> tuple[SessionReread, ...]:
    """Every session in the order it was opened, or this one. Raw evidence is never changed."""
    sessions = [session] if session else DiagnosisSession.objects.order_by("created_at", "pk")
    return tuple(_reread_session(one) for one in sessions)


def _reread_session(session: DiagnosisSession) -> SessionReread:
    before = facts_of(session)
    names = []
    ids = list(session.evidence.order_by("pk").values_list("pk", flat=True))
    for pk in ids:  # one at a time: bodies may be large
        evidence = session.evidence.get(pk=pk)
        if intake.reread_one(evidence):
            names.append(evidence.name)
    if not names:
        return SessionReread(session, len(ids))
    after = facts_of(session)
    result = SessionReread(
        session,
        len(ids),
        tuple(names),
        tuple(_fact_changes(before, after)),
        tuple(_verdict_changes(before, after, session.vmid)),
    )
    about: dict[str, Any] = {
        "facts": [change.fact_id for change in result.facts],
        "verdicts": [change.hypothesis for change in result.verdicts],
    }
    Event.record(session, "evidence_reread", None, names=names, **about)
    return result


def _fact_changes(before: Facts, after: Facts) -> Iterator[FactChange]:
    for fact_id in sorted(before.readings.keys() | after.readings.keys()):
        old, new = _best_reading(before, fact_id), _best_reading(after, fact_id)
        if _reading_content(old) != _reading_content(new):
            yield FactChange(fact_id, _reading_kind(old), _reading_kind(new))


def _verdict_changes(before: Facts, after: Facts, vmid: int | None) -> Iterator[VerdictChange]:
    old, new = (diagnose(facts, vmid=vmid).verdicts for facts in (before, after))
    for name in new:
        if name in old and old[name].kind is not new[name].kind:
            yield VerdictChange(name, old[name].kind.value, new[name].kind.value)


def _best_reading(facts: Facts, fact_id: str) -> Sourced | None:
    return next(iter(facts.readings.get(fact_id, ())), None)


def _reading_content(item: Sourced | None) -> tuple[Any, ...] | None:
    return (item.reading.kind, item.reading.value, item.reading.missing) if item else None


def _reading_kind(item: Sourced | None) -> str:
    return item.reading.kind.value if item else "none"
