"""What the pages of a session have in common, and how a page's own values join them: the contract of templates.

Each page declares its own values as a frozen dataclass; a template reads the fields of both by their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from webapp.accounts.models import GIVEN
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.pages.next_step import Standing, standing
from webapp.pages.progress import Progress, progress_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.evidence_rows import evidence_of
from webapp.records.models import DiagnosisSession, Event
from webapp.records.presence import Person, look, people_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class Step:
    """One of the eight. why: what it is asked for, in the operator's words."""

    id: str
    title: str
    why: str
    namespace: str = "session"


STEPS = (
    Step(
        "symptom",
        "Symptom & goal",
        "What you serve, how fast it is, how fast it should be. The bound is computed from these figures.",
    ),
    Step(
        "hypothesis",
        "First hypothesis",
        "What you think it is. It is kept, so that the evidence can confirm or correct it in the open.",
    ),
    Step(
        "guest",
        "Look at the guest",
        "Read-only questions to the GPU machine: what it is, what its driver says of the GPU pairs.",
    ),
    Step(
        "path",
        "Measure the path",
        "How long a copy between two GPUs really takes, with controls. It loads the GPUs for a short while.",
    ),
    Step("host", "Ask the host", "Only the hypervisor knows how the GPUs are wired and what this VM was given."),
    Step("diagnosis", "Diagnosis", "What the evidence carries, what it rules out, and what is not known yet."),
    Step("decide", "Decide", "Which changes are worth a maintenance window, which are not, and why.", "decision"),
    Step("verify", "Verify", "The same measurements again: did it help?", "decision"),
)


@dataclass(frozen=True, slots=True)
class RailEntry:
    """A step in the rail. now: it is the page itself."""

    step: Step
    number: int
    url: str
    done: bool
    now: bool


@dataclass(frozen=True, slots=True)
class Activity:
    """events: the newest, each with how many it stands for. new_after: number of the last event that the reader
    saw before. others: names of who else looks at the session now. seen_activity: changes whenever these do."""

    events: list[tuple[Event, int]]
    new_after: int | None
    others: list[str]
    seen_activity: str


@dataclass(frozen=True, slots=True)
class SessionPage:
    """step, previous, following: None on a page that is no step. standing: the answer, where it is on top.

    labels: what a link calls an output, by its name. older: when those were taken that are from before the last
    change. roles: those that a member can be given, with their words.
    """

    session: DiagnosisSession
    progress: Progress
    rail: list[RailEntry]
    step: Step | None
    previous: RailEntry | None
    following: RailEntry | None
    standing: Standing | None
    labels: Mapping[str, str]
    older: Mapping[str, datetime | None]
    members: list[Person]
    activity: Activity
    roles: Sequence[tuple[str, str]] = tuple(GIVEN)
    nav: str = "sessions"


def session_page(
    session: DiagnosisSession,
    step_id: str = "",
    *,
    facts: Facts | None = None,
    result: Diagnosis | None = None,
    with_answer: bool = False,
) -> SessionPage:
    """facts and result: as `facts_of` and `session_diagnosis` give them, where the page has them. with_answer: the
    answer is on top, as on every step."""
    progress = progress_of([session])[session.pk]
    rail = rail_of(session, progress, step_id)
    here = next((i for i, entry in enumerate(rail) if entry.now), None)
    answer = None
    if here is not None or with_answer:
        result = result or session_diagnosis(session, facts)
        answer, facts = standing(session, result, progress), result.facts
    people = people_of(session)
    return SessionPage(
        session=session,
        progress=progress,
        rail=rail,
        step=STEPS[here] if here is not None else None,
        previous=rail[here - 1] if here else None,
        following=rail[here + 1] if here is not None and here + 1 < len(rail) else None,
        standing=answer,
        labels=_evidence_labels_in(facts)
        if facts
        else cast(Mapping[str, str], SimpleLazyObject(lambda: _evidence_labels(session))),
        older=_older_times_in(facts)
        if facts
        else cast(Mapping[str, Any], SimpleLazyObject(lambda: _older_times(session))),
        members=[person for person in people if person.role],
        activity=activity_of(session, people),
    )


def rail_of(session: DiagnosisSession, progress: Progress, step_id: str = "") -> list[RailEntry]:
    return [
        RailEntry(
            step,
            number,
            reverse(f"{step.namespace}:{step.id}", args=[session.pk]),
            done=step.id in progress.done,
            now=step.id == step_id,
        )
        for number, step in enumerate(STEPS, 1)
    ]


def context_of(*parts: DataclassInstance) -> dict[str, Any]:
    """The fields of all parts by their names. Raises TypeError where two parts have the same one."""
    context: dict[str, Any] = {}
    for part in parts:
        values = {field.name: getattr(part, field.name) for field in fields(part)}
        if twice := context.keys() & values.keys():
            raise TypeError(f"{type(part).__name__} has {', '.join(sorted(twice))} once more")
        context |= values
    return context


def render_page(
    request: HttpRequest, template: str, page: SessionPage, *own: DataclassInstance, status: int = 200
) -> TemplateResponse:
    """own: what the template reads beside what all pages of a session have."""
    return TemplateResponse(request, template, context_of(page, page.activity, *own), status=status)


def activity_of(session: DiagnosisSession, people: Sequence[Person]) -> Activity:
    """What happened lately, what of it is new to who asks, and who else looks at it now."""
    newest = list(session.events.all()[:60])
    last = newest[0].number if newest else 0
    new_after, others = None, list[str]()
    if session.asked_by is not None:
        new_after, others = look(session, session.asked_by, last, people)
    return Activity(_folded_events(newest)[:12], new_after, others, f"{last}:{','.join(others)}")


def _folded_events(events: list[Event]) -> list[tuple[Event, int]]:
    """Newest first; outputs that one person gave in a row are one entry with their number."""
    entries: list[tuple[Event, int]] = []
    for event in events:
        last, count = entries[-1] if entries else (None, 0)
        if last and event.kind == last.kind == "evidence_taken" and event.actor_id == last.actor_id:
            entries[-1] = (last, count + 1)
        else:
            entries.append((event, 1))
    return entries


def _evidence_labels_in(facts: Facts) -> dict[str, str]:
    """What a link to an evidence calls it: its file or probe, else what it is."""
    labels: dict[str, str] = {}
    for item in (item for group in facts.readings.values() for item in group):
        labels[item.source] = labels.get(item.source) or item.label  # what was derived has none
    return {name: _evidence_label(name.partition("@")[0], label) for name, label in labels.items()}


def _older_times_in(facts: Facts) -> dict[str, datetime | None]:
    """When each output was taken that is from before the last change."""
    items = (item for group in facts.readings.values() for item in group)
    return {item.source: item.at for item in items if item.source in facts.past}


def _older_times(session: DiagnosisSession) -> dict[str, datetime | None]:
    """The same, of a page that has no facts."""
    newest = {e.name: e for e in sorted(evidence_of(session), key=lambda e: e.epoch)}
    return {name: e.created_at for name, e in newest.items() if e.epoch < session.epoch}


def _evidence_labels(session: DiagnosisSession) -> dict[str, str]:
    """The same, of a page that has no facts."""
    return {e.name: _evidence_label(e.reader, e.label) for e in evidence_of(session)}


def _evidence_label(reader: str, label: str) -> str:
    name = label.removesuffix(".txt").rpartition("/")[2] if reader == "paste" else reader
    short = name.removeprefix("guest.").removeprefix("host.").removeprefix("bench.")
    return short if short and " " not in short else reader
