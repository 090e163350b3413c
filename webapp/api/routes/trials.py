"""An A/B of one option on one measurement: its plan, the next step, and what the runs say so far."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Status
from pydantic import BaseModel, Field

from webapp.accounts.models import Role
from webapp.api.asking import Sent, session_of
from webapp.api.auth import READ, RUN, WRITE
from webapp.api.problems import RefusedError
from webapp.api.remembering import remembered
from webapp.api.routes.reasoning import plain
from webapp.api.routes.runs import Sending, shown
from webapp.diagnosis.compare.schedule import RUNS
from webapp.diagnosis.compare.verification import Verified
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.matching import with_vm
from webapp.review.trials import (
    MOST_RUNS,
    Progress,
    Setup,
    line_for,
    progress,
    setup_of,
    started,
    step_asked,
    step_start,
    take_step,
    waits_for_approval,
)
from webapp.triage.case_facts import facts_of
from webapp.triage.models import DiagnosisSession
from webapp.triage.uploads import Upload
from webapp.triage.views.shell import acting
from webapp.triage.views.start import LARGEST_UPLOAD_BYTES

router = Router(tags=["verification"])
T = "/sessions/{uuid:session_id}/trials"
ONE = T + "/{option}/{benchmark}"


class Tried(BaseModel):
    """runs: of each arm. set: NCCL settings that the measurement itself makes in arm B."""

    option: str
    benchmark: str
    runs: int
    set: str


class TrialStep(BaseModel):
    """arm: A without the option, B with it. switch: the arm is another than before. run: the newest run's
    number; given: the evidence that was measured by hand, "" for none."""

    number: int
    arm: str
    block: int
    switch: bool
    run: int | None
    given: str
    measured: bool


class TrialSoFar(Tried):
    """next: the number of the next step, null when all are measured; line: how a person runs it, "" where
    nobody can by hand. waits_for_approval: arm B is tried once a decision for it was approved. drifted: null
    while nobody can tell. verified: B against A, null while one of them is missing; in it tokens_per_joule,
    one entry a number of requests at once, empty where no power was measured."""

    order: str
    why: str
    steps: list[TrialStep]
    next: int | None
    line: str
    waits_for_approval: bool
    drifted: bool | None
    verified: dict[str, Any] | None


class Arms(BaseModel):
    runs: int = Field(RUNS, ge=2, le=MOST_RUNS)
    set: str = Field("", max_length=400)


class StepRun(Sent):
    """runs, set: as asked for. step: the next one's number. yes: its arm is in place, and the machine may be
    loaded now."""

    runs: int = Field(RUNS, ge=2, le=MOST_RUNS)
    set: str = Field("", max_length=400)
    step: int = Field(ge=1, le=1000)
    target: int = Field(ge=1, le=2**53)
    yes: bool = False


class StepResult(Sent):
    """text: what the next step printed."""

    runs: int = Field(RUNS, ge=2, le=MOST_RUNS)
    set: str = Field("", max_length=400)
    step: int = Field(ge=1, le=1000)
    text: str = Field(min_length=1, max_length=LARGEST_UPLOAD_BYTES)


def _setup(option: str, benchmark: str, arms: Arms | StepRun | StepResult) -> Setup:
    given = {"option": option, "benchmark": benchmark, "runs": str(arms.runs), "set": arms.set}
    try:
        return setup_of(given)
    except ValueError as error:
        raise RefusedError(422, str(error)) from error


def _facts(session: DiagnosisSession) -> Facts:
    return with_vm(facts_of(session), session.vmid)


@router.get(T, auth=READ, response=list[Tried])
def list_trials(request: HttpRequest, session_id: UUID) -> list[Tried]:
    """The session's trials that have a run or an output by hand."""
    return [Tried(**_tried(one)) for one in started(session_of(request, session_id))]


def _tried(setup: Setup) -> dict[str, Any]:
    names = {"option": setup.option.id, "benchmark": setup.benchmark.id}
    return {**names, "runs": setup.runs, "set": setup.sets}


@router.get(ONE, auth=READ, response=TrialSoFar)
def read_trial(
    request: HttpRequest, session_id: UUID, option: Path[str], benchmark: Path[str], asked: Query[Arms]
) -> TrialSoFar:
    """Its plan, also before anything ran, and what the runs say so far."""
    session = session_of(request, session_id)
    return _so_far(session, _setup(option, benchmark, asked))


def _so_far(session: DiagnosisSession, setup: Setup) -> TrialSoFar:
    facts = _facts(session)
    found = progress(session, setup, facts)
    line, verified = found.next and line_for(setup, found.next, facts), found.trial.verified
    return TrialSoFar(
        **_tried(setup),
        order=str(setup.plan.order),
        why=setup.plan.why,
        steps=_steps(setup, found),
        next=found.next.number if found.next else None,
        line=line.line if line else "",
        waits_for_approval=waits_for_approval(session, setup),
        drifted=found.trial.drifted,
        verified=_verified(verified) if verified else None,
    )


def _verified(found: Verified) -> dict[str, Any]:
    told = {"comparability": found.gate, "comparison": found.compared}
    return {name: plain(part) for name, part in (told | {"tokens_per_joule": found.energy}).items()}


def _steps(setup: Setup, found: Progress) -> list[TrialStep]:
    return [
        TrialStep(
            number=step.number,
            arm=str(step.arm),
            block=step.block,
            switch=step.switch,
            run=run.number if (run := found.runs.get(step.number)) else None,
            given=found.given.get(step.number, ""),
            measured=step.number in found.measured,
        )
        for step in setup.plan.steps
    ]


@router.post(ONE + "/runs", auth=RUN, response={201: Sending})
@remembered()
def run_trial_step(
    request: HttpRequest, session_id: UUID, option: Path[str], benchmark: Path[str], sent: StepRun
) -> Status[Sending]:
    """Starts the next step."""
    session = session_of(request, session_id, Role.OPERATOR)
    setup = _setup(option, benchmark, sent)
    target = get_object_or_404(session.targets, pk=sent.target)
    if not sent.yes:
        raise RefusedError(422, "Say yes=true when the arm is in place and the machine may load.")
    try:
        made = step_start(
            session, setup, _facts(session), number=str(sent.step), target=target, user=acting(request), yes=sent.yes
        )
    except ValueError as error:
        raise RefusedError(409, str(error)) from error
    return Status(201, shown(made))


@router.post(ONE + "/results", auth=WRITE, response={201: TrialSoFar})
@remembered()
def give_trial_step(
    request: HttpRequest, session_id: UUID, option: Path[str], benchmark: Path[str], sent: StepResult
) -> Status[TrialSoFar]:
    """Takes what the next step printed where somebody ran it by hand."""
    session = session_of(request, session_id, Role.OPERATOR)
    setup = _setup(option, benchmark, sent)
    so_far, upload = progress(session, setup, _facts(session)), Upload("", sent.text.encode())
    try:
        step = step_asked(session, setup, so_far, str(sent.step))
        take_step(session, setup, step, [upload], acting(request))
    except ValueError as error:
        raise RefusedError(409, str(error)) from error
    return Status(201, _so_far(session, setup))
