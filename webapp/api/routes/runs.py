"""Runs: probes and benchmarks on a machine, their state, and their output while it comes."""

import codecs
from datetime import datetime
from uuid import UUID

from django.db.models.functions import Length
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from agents.benchmark import all_benchmarks
from webapp.accounts.models import Role
from webapp.api.auth import READ, RUN
from webapp.api.declared import filled
from webapp.api.idempotency import remembered
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError
from webapp.api.request_context import Sent, session_of, user_of
from webapp.records.case_facts import facts_of
from webapp.records.models import DiagnosisSession, Run, Target
from webapp.records.models.run import BENCHMARK
from webapp.runs import lifecycle
from webapp.runs.benchmark_options import PREFIX, arguments_of, offers

router = Router(tags=["runs"])
S = "/sessions/{uuid:session_id}"
MOST_BYTES = 2**20  # of output in one answer
NEEDS_YES = "It loads the machine: say yes=true when it may."


class Sending(BaseModel):
    """A run. waits_for: what a queued run waits for, "" for nothing. failure: the kind of the problem, as
    the metrics count it. cancel_failed: it was to be cancelled, and nobody could see that its processes on
    the machine have ended. evidence: names of what it brought so far."""

    id: UUID
    number: int
    kind: str
    names: list[str]
    target: int
    role: str
    state: str
    cancel_requested: bool
    cancel_failed: bool
    waits_for: str
    problem: str
    failure: str
    started_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    evidence: list[str]


class NewRun(Sent):
    """benchmark: its id, with its choices and yes=true, which says that the machine may be loaded now;
    without one, probes: the named ones or all of the machine's role."""

    target: int = Field(ge=1, le=2**53)
    benchmark: str = Field("", max_length=100)
    choices: dict[str, str] = Field(default_factory=dict, max_length=50)
    interpreter: str = Field("", max_length=400)
    yes: bool = False
    probes: list[str] | None = Field(None, min_length=1, max_length=200)
    nccl_log: str = Field("", max_length=400)


class Again(Sent):
    """yes: as for the first; of probes it is not asked."""

    yes: bool = False


class Output(BaseModel):
    """offset, next_offset: bytes of the run's raw output; ask again from next_offset until ended and
    nothing more comes. What is no UTF-8 is replaced in text."""

    text: str
    offset: int
    next_offset: int
    ended: bool
    state: str


class From(BaseModel):
    offset: int = Field(0, ge=0, le=2**53)


class Choice(BaseModel):
    name: str
    title: str
    pattern: str
    value: str


class Offer(BaseModel):
    """A measurement that can be started. value: of each choice, what is taken when nothing is said."""

    id: str
    title: str
    cost: str
    risk: str
    choices: list[Choice]


def run_body(run: Run) -> Sending:
    return filled(
        Sending,
        run,
        target=run.target_id,
        role=run.target.role,
        state=str(run.state),
        cancel_requested=run.cancel_requested_at is not None,
        waits_for=lifecycle.wait_reason(run),
        evidence=[one.name for one in run.evidence.only("reader", "sha256", "run")],
    )


def _run(session: DiagnosisSession, run_id: UUID) -> Run:
    return get_object_or_404(session.runs.select_related("target"), pk=run_id)


@router.get(S + "/runs", auth=READ, response=Page[Sending])
def list_runs(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Sending]:
    """The session's runs, the newest first."""
    rows = session_of(request, session_id).runs.select_related("target")
    records, following = page(rows, query, by="number")
    return Page[Sending](items=[run_body(one) for one in records], next=following)


@router.post(S + "/runs", auth=RUN, response={201: Sending})
@remembered()
def start_run(request: HttpRequest, session_id: UUID, sent: NewRun) -> Status[Sending]:
    """Starts probes or a benchmark; ask for the run until it has ended."""
    session = session_of(request, session_id, Role.OPERATOR)
    target = get_object_or_404(session.targets, pk=sent.target)
    try:
        made = _queued(request, session, target, sent)
    except ValueError as error:
        raise RefusedError(422, str(error)) from error
    return Status(201, run_body(made))


def _queued(request: HttpRequest, session: DiagnosisSession, target: Target, sent: NewRun) -> Run:
    """Raises ValueError for what cannot be run, PermissionDenied."""
    user = user_of(request)
    if not sent.benchmark:
        log = {"nccl_log": sent.nccl_log} if sent.nccl_log else None
        return lifecycle.queue_probes(session, target, user, sent.probes, log)
    if not sent.yes:
        raise ValueError(NEEDS_YES)
    benchmark = all_benchmarks().get(sent.benchmark)
    choices = {PREFIX + name: value for name, value in sent.choices.items()}
    arguments = arguments_of(benchmark, choices) if benchmark else {}
    if sent.interpreter:
        arguments["INTERPRETER"] = sent.interpreter
    return lifecycle.queue_benchmark(session, target, user, sent.benchmark, arguments)


@router.get(S + "/runs/{uuid:run_id}", auth=READ, response=Sending)
def read_run(request: HttpRequest, session_id: UUID, run_id: UUID) -> Sending:
    """One run and its state."""
    return run_body(_run(session_of(request, session_id), run_id))


@router.post(S + "/runs/{uuid:run_id}/cancel", auth=RUN, response=Sending)
def cancel_run(request: HttpRequest, session_id: UUID, run_id: UUID) -> Sending:
    """Asks for its end. One that had ended stays as it is."""
    session = session_of(request, session_id, Role.OPERATOR)
    lifecycle.request_cancel(_run(session, run_id), user_of(request))
    return run_body(_run(session, run_id))


@router.post(S + "/runs/{uuid:run_id}/again", auth=RUN, response={201: Sending})
@remembered()
def run_again(request: HttpRequest, session_id: UUID, run_id: UUID, sent: Again) -> Status[Sending]:
    """Starts what a run that ended did once more, on the same machine, with its arguments."""
    before = _run(session_of(request, session_id, Role.OPERATOR), run_id)
    if not before.ended:
        raise RefusedError(409, f"Run {before.number} has not ended.")
    if before.kind == BENCHMARK and not sent.yes:
        raise RefusedError(422, NEEDS_YES)
    try:
        return Status(201, run_body(lifecycle.queue_repeat(before, user_of(request))))
    except ValueError as error:
        raise RefusedError(422, str(error)) from error


@router.get(S + "/runs/{uuid:run_id}/output", auth=READ, response=Output)
def read_output(request: HttpRequest, session_id: UUID, run_id: UUID, query: Query[From]) -> Output:
    """Its raw output from an offset, as far as it came."""
    run = _run(session_of(request, session_id), run_id)
    raw = _bytes_from(run, query.offset)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    # A character that is not whole yet is left for the next answer.
    final = run.ended and len(raw) < MOST_BYTES
    text = decoder.decode(raw, final)
    length = len(raw) - (0 if final else len(decoder.getstate()[0]))
    return Output(
        text=text, offset=query.offset, next_offset=query.offset + length, ended=run.ended, state=str(run.state)
    )


def _bytes_from(run: Run, offset: int) -> bytes:
    """At most MOST_BYTES. Only the pieces that are in it are read."""
    begins, output = 0, b""
    sizes = run.chunks.annotate(size=Length("body")).order_by("number")
    for number, size in sizes.values_list("number", "size"):
        if begins + size > offset:
            body = bytes(run.chunks.get(number=number).body)
            output += body[max(0, offset - begins) :]
        if len(output) >= MOST_BYTES:
            break
        begins += size
    return output[:MOST_BYTES]


@router.get(S + "/benchmarks", auth=READ, response=list[Offer])
def list_benchmarks(request: HttpRequest, session_id: UUID) -> list[Offer]:
    """What can be measured, what it costs and risks, and its choices with what the session says."""
    rows = offers(facts_of(session_of(request, session_id)))
    return [
        Offer(
            id=one.benchmark.id,
            title=one.benchmark.title,
            cost=one.cost,
            risk=one.risk,
            choices=[
                Choice(
                    name=field.choice.name, title=field.choice.title, pattern=field.choice.pattern, value=field.value
                )
                for field in one.fields
            ],
        )
        for one in rows
    ]
