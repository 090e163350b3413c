"""Recording a decision with its evidence pinned, and moving its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F

from agents.facts import ReadingKind
from webapp.accounts.models import User
from webapp.diagnosis.case import OptionStatus
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.review.models import Decision, DecisionState
from webapp.triage.diagnosis_json import as_dict
from webapp.triage.models import DiagnosisSession, Event, Evidence

CLOSED = frozenset({DecisionState.VERIFIED, DecisionState.NO_EFFECT, DecisionState.REVERTED})


class DecisionError(Exception):
    """What is wrong with a proposed decision, in words for the page."""


def decision_record(
    session: DiagnosisSession,
    *,
    user: User,
    title: str,
    chosen: Sequence[str],
    reason: str,
    unsafe_understood: bool,
    result: Diagnosis,
) -> Decision:
    """Stores the record with every considered option as it stood. Raises DecisionError."""
    _check(chosen, reason, unsafe_understood, result)
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        number = session.decisions.count() + 1
        names = ", ".join(option.title for option in all_options() if option.id in chosen)
        decision = Decision.objects.create(
            session=session,
            number=number,
            title=title or names[:200],
            context=f"{result.headline} {result.summary}",
            options=as_dict(result)["options"],
            chosen=list(chosen),
            reason=reason,
            pins=pins(session, result.facts),
            epoch=session.epoch,
            decided_by=user,
        )
        Event.record(session, "decision_recorded", user, number=number, chosen=list(chosen))
    return decision


def _check(chosen: Sequence[str], reason: str, unsafe_understood: bool, result: Diagnosis) -> None:
    if not chosen:
        raise DecisionError("Choose at least one option; “do nothing yet” is one of P0 or P1.")
    if not reason.strip():
        raise DecisionError("Say why, in a sentence; the next reader has only this record.")
    for name in chosen:
        advice = result.advice.get(name)
        if advice is None:
            raise DecisionError(f"There is no option {name}.")
        if advice.status is OptionStatus.BLOCKED:
            raise DecisionError(f"{name} cannot work here: {advice.why[0].text}")
        if advice.status is OptionStatus.UNSAFE and not unsafe_understood:
            raise DecisionError(f"{name} is unsafe: {advice.why[0].text} Tick that you read this.")


def pins(session: DiagnosisSession, facts: Facts) -> list[dict[str, Any]]:
    """The evidence that counts now: [{"name", "sha256", "facts": [ids]}], by name."""
    counting = counting_sources(facts)
    hashes = {
        evidence.name: evidence.sha256
        for evidence in Evidence.objects.filter(session=session).defer("body", "stderr")
    }
    return [
        {"name": name, "sha256": hashes[name], "facts": sorted(fact_ids)}
        for name, fact_ids in sorted(counting.items())
        if name in hashes
    ]


def counting_sources(facts: Facts) -> dict[str, set[str]]:
    """For each source, the facts that are known from it; `vm.*` follow from `host.vms`."""
    found: dict[str, set[str]] = {}
    for fact_id, group in facts.readings.items():
        if fact_id.startswith("vm.") or group[0].reading.kind is not ReadingKind.KNOWN:
            continue
        found.setdefault(group[0].source, set()).add(fact_id)
    return found


def superseded_pins(decision: Decision, facts: Facts) -> list[str]:
    """Facts the decision rests on whose evidence no longer counts; it is stale when there are any."""
    counting = counting_sources(facts)
    return sorted(
        fact_id
        for pin in decision.pins
        for fact_id in pin["facts"]
        if fact_id not in counting.get(pin["name"], set())
    )


def decision_apply(decision: Decision, *, user: User) -> bool:
    """Marks it applied and opens a new epoch: evidence from now on is “after”. False if it was not open."""
    with transaction.atomic():
        won = Decision.objects.filter(pk=decision.pk, state=DecisionState.ACCEPTED).update(
            state=DecisionState.APPLIED
        )
        if won:
            DiagnosisSession.objects.filter(pk=decision.session_id).update(epoch=F("epoch") + 1)
            Event.record(decision.session, "changes_applied", user, number=decision.number)
    return bool(won)


def decision_close(decision: Decision, *, user: User, state: str, outcome: str) -> bool:
    """Ends an applied decision as verified, no effect or reverted. Raises DecisionError."""
    if state not in CLOSED:
        raise DecisionError("Close it as verified, no effect or reverted.")
    if not outcome.strip():
        raise DecisionError("Say what was seen, in a sentence.")
    with transaction.atomic():
        won = Decision.objects.filter(pk=decision.pk, state=DecisionState.APPLIED).update(
            state=state, outcome=outcome
        )
        if won:
            Event.record(
                decision.session, "decision_closed", user, number=decision.number, state=state
            )
    return bool(won)
