"""Where a session stands: what is done and next, how its verdicts came about, the same in plain words, and
what was measured beside what healthy machines reach."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel

from webapp.api.asking import session_of
from webapp.api.auth import READ
from webapp.api.routes.reasoning import plain
from webapp.diagnosis.expected import Figure, figures
from webapp.diagnosis.plain_words import for_a_manager
from webapp.diagnosis.sections import for_an_engineer
from webapp.triage.case_facts import facts_of
from webapp.triage.diagnoses import session_diagnosis, session_pivots
from webapp.triage.progress import progress_of
from webapp.triage.standing import Next, standing
from webapp.triage.views.shell import STEPS

router = Router(tags=["reasoning"])
S = "/sessions/{uuid:session_id}"
Json = dict[str, Any]


class Act(BaseModel):
    """cost: minutes and what restarts, "" where it is none of that. page: where people do it."""

    text: str
    actor: str
    cost: str
    page: str


class StepDone(BaseModel):
    id: str
    title: str
    done: bool


class WhereItStands(BaseModel):
    """rests: what can be asked or measured, and whether it was. also: what waits beside `next`."""

    headline: str
    summary: str
    rests: dict[str, bool]
    steps: list[StepDone]
    next: Act
    also: list[Act]


class VerdictChange(BaseModel):
    """subject: a hypothesis's id, or "gate <name> (<path>)". before: "" at the first moment."""

    subject: str
    before: str
    after: str


class Moment(BaseModel):
    """Evidence that came together, and what it changed."""

    title: str
    at: datetime
    headline: str
    changes: list[VerdictChange]


class InWords(BaseModel):
    """manager: a paragraph. engineer: sections with their claims, each with its evidence, and notes."""

    manager: str
    engineer: list[Json]


class MeasuredFigure(BaseModel):
    """low, high: its 95 % interval, the figure itself where none was given. standing: within, below, above,
    unstable, or that no baseline is known; expected: the baseline with its source."""

    title: str
    value: float
    unit: str
    low: float
    high: float
    standing: str
    expected: Json | None
    evidence: list[Json]


@router.get(S + "/standing", auth=READ, response=WhereItStands)
def read_standing(request: HttpRequest, session_id: UUID) -> WhereItStands:
    """Which of the eight steps are done, what is next, and who acts."""
    session = session_of(request, session_id)
    progress = progress_of([session])[session.pk]
    found = standing(session, session_diagnosis(session), progress)
    return WhereItStands(
        headline=found.headline,
        summary=found.summary,
        rests=dict(found.rests),
        steps=[StepDone(id=s.id, title=s.title, done=s.id in progress.done) for s in STEPS],
        next=_act(found.next),
        also=[_act(one) for one in found.also],
    )


def _act(one: Next) -> Act:
    return Act(text=one.text, actor=one.actor, cost=one.cost, page=one.url)


@router.get(S + "/moments", auth=READ, response=list[Moment])
def read_moments(request: HttpRequest, session_id: UUID) -> list[Moment]:
    """Which evidence changed which verdict, the oldest first; what came before the last ten is one."""
    session = session_of(request, session_id)
    return [Moment(**plain(one)) for one in session_pivots(session, facts_of(session))]


@router.get(S + "/summary", auth=READ, response=InWords)
def read_summary(request: HttpRequest, session_id: UUID) -> InWords:
    """The diagnosis in a paragraph for a manager, and in sections for an engineer."""
    found = session_diagnosis(session_of(request, session_id))
    return InWords(manager=for_a_manager(found), engineer=plain(for_an_engineer(found)))


@router.get(S + "/figures", auth=READ, response=list[MeasuredFigure])
def read_figures(request: HttpRequest, session_id: UUID) -> list[MeasuredFigure]:
    """The newest measured figures, each beside what a healthy machine of its kind reaches."""
    return [_figure(one) for one in figures(facts_of(session_of(request, session_id)))]


def _figure(one: Figure) -> MeasuredFigure:
    told = plain(one)
    names = ("title", "value", "unit", "low", "high", "evidence")
    return MeasuredFigure(
        standing=str(one.standing), expected=told["expectation"], **{name: told[name] for name in names}
    )
