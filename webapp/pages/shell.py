"""What all pages of a session share: who may see it, the rail of steps, the activity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_safe

from webapp.accounts.models import GIVEN, Role, User
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.pages.next_step import standing
from webapp.pages.progress import progress_of, with_progress
from webapp.records.access import session_for
from webapp.records.diagnoses import session_diagnosis
from webapp.records.evidence_rows import evidence_of
from webapp.records.models import DiagnosisSession, Event
from webapp.records.presence import Person, look, people_of

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Step:
    """One of the eight. why: what it is asked for, in the operator's words."""

    id: str
    title: str
    why: str


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
    Step("decide", "Decide", "Which changes are worth a maintenance window, which are not, and why."),
    Step("verify", "Verify", "The same measurements again: did it help?"),
)


def acting(request: HttpRequest) -> User:
    """The signed-in person; LoginRequiredMiddleware has seen to it."""
    return cast(User, request.user)


View = Callable[Concatenate[HttpRequest, DiagnosisSession, P], HttpResponse]


def on_session_for(least: Role) -> Callable[[View[P]], Callable[..., HttpResponse]]:
    """Gives the view its session. Answers 404 to those who may not see it, and 403 to those whose role
    there is below `least` and who want more than to read."""

    def decorated(view: View[P]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def wrapped(request: HttpRequest, session_id: UUID, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            needed = Role.VIEWER if request.method in READING else least
            # Its progress comes along where nothing is going to change it. A fragment that is asked for again
            # and again says what was seen, and shows no progress.
            only_read = request.method in READING and "seen" not in request.GET
            prepare = with_progress if only_read else None
            session = session_for(acting(request), session_id, needed, prepare=prepare)
            return view(request, session, *args, **kwargs)

        return wrapped

    return decorated


on_session = on_session_for(Role.OPERATOR)
READING = frozenset({"GET", "HEAD", "OPTIONS"})


def shell(
    session: DiagnosisSession, step_id: str, *, facts: Facts | None = None, with_answer: bool = False, **more: Any
) -> dict[str, Any]:
    """Context of a session page: its rail with what is done, its activity, and the page's own. facts: as
    `facts_of` gives them, where the page has them. with_answer: the answer is on top, as on every step."""
    progress = progress_of([session])[session.pk]
    rail = [
        {
            "step": s,
            "number": i,
            "done": s.id in progress.done,
            "now": s.id == step_id,
            "url": reverse(
                f"session:{s.id}" if s.id not in {"decide", "verify"} else f"decision:{s.id}", args=[session.pk]
            ),
        }
        for i, s in enumerate(STEPS, 1)
    ]
    here = next((i for i, entry in enumerate(rail) if entry["now"]), None)
    if here is not None or with_answer:
        given = more.get("result")
        result = given if isinstance(given, Diagnosis) else session_diagnosis(session, facts)
        more["standing"] = standing(session, result, progress)
        facts = result.facts
    people = people_of(session)
    return {
        "nav": "sessions",
        "session": session,
        "rail": rail,
        "progress": progress,
        "step": STEPS[here] if here is not None else None,
        "previous": rail[here - 1] if here else None,
        "following": rail[here + 1] if here is not None and here + 1 < len(rail) else None,
        "labels": labels_in(facts) if facts else SimpleLazyObject(lambda: _labels(session)),
        "older": older_in(facts) if facts else SimpleLazyObject(lambda: _older(session)),
        "members": [person for person in people if person.role],
        "roles": GIVEN,
        **activity_of(session, people),
        **more,
    }


def activity_of(session: DiagnosisSession, people: Sequence[Person]) -> dict[str, Any]:
    """What happened lately, what of it is new to who asks, and who else looks at it now."""
    newest = list(session.events.all()[:60])
    found: dict[str, Any] = {"events": _folded(newest)[:12], "new_after": None, "others": []}
    last = newest[0].number if newest else 0
    if session.asked_by is not None:
        found["new_after"], found["others"] = look(session, session.asked_by, last, people)
    return {**found, "seen_activity": f"{last}:{','.join(found['others'])}"}


@require_safe
@on_session
def activity(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """The feed's live fragment; 204 when nothing is new since `seen`."""
    context = {"session": session, **activity_of(session, people_of(session))}
    if request.GET.get("seen") == context["seen_activity"]:
        return HttpResponse(status=204)
    return TemplateResponse(request, "session/_events.html", context)


def _folded(events: list[Event]) -> list[tuple[Event, int]]:
    """Newest first; outputs that one person gave in a row are one entry with their number."""
    found: list[tuple[Event, int]] = []
    for event in events:
        last = found[-1] if found else None
        if last and event.kind == last[0].kind == "evidence_taken" and event.actor_id == last[0].actor_id:
            found[-1] = (last[0], last[1] + 1)
        else:
            found.append((event, 1))
    return found


def labels_in(facts: Facts) -> dict[str, str]:
    """What a link to an evidence calls it: its file or probe, else what it is."""
    called: dict[str, str] = {}
    for item in (item for group in facts.readings.values() for item in group):
        called[item.source] = called.get(item.source) or item.label  # what was derived has none
    return {name: _label(name.partition("@")[0], label) for name, label in called.items()}


def older_in(facts: Facts) -> dict[str, datetime | None]:
    """When each output was got that is from before the last change."""
    items = (item for group in facts.readings.values() for item in group)
    return {item.source: item.at for item in items if item.source in facts.past}


def _older(session: DiagnosisSession) -> dict[str, datetime | None]:
    """The same, of a page that has no facts."""
    newest = {e.name: e for e in sorted(evidence_of(session), key=lambda e: e.epoch)}
    return {name: e.created_at for name, e in newest.items() if e.epoch < session.epoch}


def _labels(session: DiagnosisSession) -> dict[str, str]:
    """The same, of a page that has no facts."""
    return {e.name: _label(e.reader, e.label) for e in evidence_of(session)}


def _label(reader: str, label: str) -> str:
    name = label.removesuffix(".txt").rpartition("/")[2] if reader == "paste" else reader
    short = name.removeprefix("guest.").removeprefix("host.").removeprefix("bench.")
    return short if short and " " not in short else reader
