"""What a decision record holds: the options as they stood, and the evidence by its hash."""

from typing import Any

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from agents.facts import ReadingKind
from webapp.accounts.models import User
from webapp.diagnosis.answer.user_figures import user_figures
from webapp.diagnosis.case import OptionStatus
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.presenting.diagnosis_json import as_dict
from webapp.records.models import DiagnosisSession, Event, Evidence
from webapp.review.decision_fields import TEXTS, Wording
from webapp.review.models import Decision, DecisionState, RecordVersion


class DecisionError(Exception):
    """What is wrong with a proposed decision, in words for the page."""


def decision_draft(
    session: DiagnosisSession, *, user: User, wording: Wording, result: Diagnosis, supersedes: Decision | None = None
) -> Decision:
    """Stores a draft with every considered option as it stands now. Raises DecisionError."""
    _check(wording, result)
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        number = (session.decisions.aggregate(last=Max("number"))["last"] or 0) + 1
        decision = Decision(session=session, number=number, proposed_by=user, supersedes=supersedes)
        _fill(decision, wording, result)
        decision.save(force_insert=True)
        Event.record(session, "decision_drafted", user, number=number, chosen=list(wording.chosen))
    return decision


def draft_save(decision: Decision, *, user: User, version: int, wording: Wording, result: Diagnosis) -> None:
    """Raises DecisionError, and DraftChangedError when somebody saved or proposed it since `version`."""
    _check(wording, result)
    _fill(decision, wording, result)
    with transaction.atomic():
        won = Decision.objects.filter(pk=decision.pk, version=version, state=DecisionState.DRAFT).update(
            version=version + 1, proposed_by=user, **decision.content.columns
        )
        if not won:
            raise DraftChangedError(Decision.objects.get(pk=decision.pk))
        Event.record(decision.session, "decision_drafted", user, number=decision.number)
    decision.refresh_from_db()


class DraftChangedError(Exception):
    """Somebody else saved or proposed the draft meanwhile; nothing was overwritten."""

    def __init__(self, current: Decision) -> None:
        super().__init__("Somebody else changed this draft while you were writing.")
        self.current = current


def version_keep(decision: Decision, *, user: User) -> None:
    """Keeps what is put before people now."""
    last = decision.versions.aggregate(last=Max("number"))["last"] or 0
    RecordVersion.objects.create(
        decision=decision,
        number=last + 1,
        content=decision.content.columns,
        content_sha256=decision.content_sha256,
        proposed_by=user,
    )


def as_it_was(version: RecordVersion) -> Decision:
    """The record with the content of that version. Not to be saved."""
    decision = version.decision
    about = {"session": decision.session, "number": decision.number, "pk": None}
    return Decision(**about, proposed_by=version.proposed_by, **version.content)


def _fill(decision: Decision, wording: Wording, result: Diagnosis) -> None:
    names = ", ".join(o.title for o in all_options() if o.id in wording.chosen)
    texts = wording.texts | {"title": wording.title or names[: TEXTS["title"].longest]}
    for column, words in texts.items():
        setattr(decision, column, words)
    decision.chosen = list(wording.chosen)
    pin(decision, result)


def pin(decision: Decision, result: Diagnosis) -> None:
    """The options, the answer and the evidence as they are now. Not saved."""
    decision.context = f"{result.headline} {result.summary}{_typed(result.facts)}"
    decision.options = as_dict(result)["options"]
    decision.pins = pins(decision.session, result.facts)
    decision.epoch = decision.session.epoch


def _typed(facts: Facts) -> str:
    """They have no output to be pinned by, so the record holds them in words."""
    figures = "; ".join(user_figures(facts))
    return f" It rests on these figures as typed, not read: {figures}." if figures else ""


def _check(wording: Wording, result: Diagnosis) -> None:
    if not wording.chosen:
        raise DecisionError("Choose at least one option; “do nothing yet” is one of P0 or P1.")
    if not wording.reason.strip():
        raise DecisionError("Say why, in a sentence; the next reader has only this record.")
    for column, words in wording.texts.items():
        if len(words) > TEXTS[column].longest:
            raise DecisionError(f"“{TEXTS[column].label}” has at most {TEXTS[column].longest} characters.")
    for name in wording.chosen:
        advice = result.advice.get(name)
        if advice is None:
            raise DecisionError(f"There is no option {name}.")
        if advice.status is OptionStatus.BLOCKED:
            raise DecisionError(f"{name} cannot work here: {advice.why[0].text}")
        if advice.status is OptionStatus.UNSAFE and not wording.unsafe_understood:
            raise DecisionError(f"{name} is unsafe: {advice.why[0].text} Tick that you read this.")


def pins(session: DiagnosisSession, facts: Facts) -> list[dict[str, Any]]:
    """The evidence that counts now: [{"name", "sha256", "facts": [ids]}], by name."""
    counting = counting_sources(facts)
    hashes = {
        evidence.name: evidence.sha256 for evidence in Evidence.objects.filter(session=session).defer("body", "stderr")
    }
    return [
        {"name": name, "sha256": hashes[name], "facts": sorted(fact_ids)}
        for name, fact_ids in sorted(counting.items())
        if name in hashes
    ]


def counting_sources(facts: Facts) -> dict[str, set[str]]:
    """For each source, the facts that are known from it; `vm.*` follow from `host.vms`."""
    facts_by_source: dict[str, set[str]] = {}
    for fact_id, group in facts.readings.items():
        if fact_id.startswith("vm.") or group[0].reading.kind is not ReadingKind.KNOWN:
            continue
        facts_by_source.setdefault(group[0].source, set()).add(fact_id)
    return facts_by_source


def superseded_pins(decision: Decision, facts: Facts) -> list[str]:
    """Facts the decision rests on whose evidence no longer counts; it is stale when there are any."""
    counting = counting_sources(facts)
    return sorted(
        fact_id for pin in decision.pins for fact_id in pin["facts"] if fact_id not in counting.get(pin["name"], set())
    )


def decisions_matching(decisions: QuerySet[Decision], *, q: str, state: str) -> QuerySet[Decision]:
    """q: words of the record or its session. state: one that does not exist narrows nothing."""
    if q:
        words = Q(title__icontains=q) | Q(reason__icontains=q) | Q(session__title__icontains=q)
        decisions = decisions.filter(words | Q(outcome__icontains=q) | Q(chosen__icontains=q))
    return decisions.filter(state=state) if state in DecisionState.values else decisions
