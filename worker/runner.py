"""Carries out one claimed run: connects to the machine, stores its output as it arrives, ends the run."""

import logging
import math
import time
from concurrent.futures import wait
from itertools import count

from django.db.models import Max

from agents.agent import Agent, AgentError, Ending, Reason
from webapp.records.models import OutputChunk, Run, RunState
from webapp.records.models.run import BENCHMARK, CANCEL_FAILED, STORAGE_AWAY
from webapp.runs import credentials, lifecycle
from worker.agent_loop import connections, pump_output, start_connecting
from worker.benchmark_job import BenchmarkJob
from worker.database_retry import with_retry
from worker.lease import LeaseKeeper, Stop
from worker.probe_job import ProbeJob
from worker.slots import PATIENCE_S, Slot

WAIT_S = 0.25
Job = ProbeJob | BenchmarkJob
# Failure names of unwanted endings; a run that could not begin is counted by its error's class.
FAILURES = {Reason.LOST: "ConnectionLost", Reason.TIMED_OUT: "TimedOut", Reason.FLOODED: "Flooded"}

logger = logging.getLogger(__name__)


def carry_out(claim: lifecycle.Claim, slot: Slot) -> None:
    """Ends the run in one of its ends or hands it back, unless another worker has taken it over. The place is
    lent while the machine does not answer."""
    run = Run.objects.select_related("session", "target__stored_key", "created_by").get(pk=claim.run_id)
    job: Job = BenchmarkJob(run, claim) if run.kind == BENCHMARK else ProbeJob(run, claim)
    keeper = LeaseKeeper(claim)
    try:
        agent = credentials.agent_for(run.target, run.created_by, connections())
        sent = {"nonce": job.nonce, "script_sha256": job.script_sha256}
        if not with_retry(lambda: lifecycle.mark_running(claim, **sent)):
            return
        ending = _connect(agent, keeper, slot) or _follow_output(agent, job, keeper)
    except (AgentError, credentials.RefusedError) as error:
        problem, failure = str(error), type(error).__name__
        with_retry(lambda: lifecycle.finish(claim, RunState.FAILED, problem, failure))
        return
    if not with_retry(lambda: _end_run(claim, job, keeper.reason, ending)):
        logger.warning("run %s was no longer ours when it ended", run.pk)


def _connect(agent: Agent, keeper: LeaseKeeper, slot: Slot) -> Ending | None:
    """Waits for the connection. Returns None when it is open, an ending when somebody stopped the run before."""
    connecting, impatient = start_connecting(agent), time.monotonic() + PATIENCE_S
    while not wait([connecting], WAIT_S).done:
        if keeper.must_stop():
            connecting.cancel()
            return Ending(None, Reason.CANCELLED)
        if time.monotonic() > impatient:
            slot.lend()
            impatient = math.inf
    connecting.result()
    return None


def _follow_output(agent: Agent, job: Job, keeper: LeaseKeeper) -> Ending:
    """Stores every piece before anything reads it. However it ends, the remote side is ended too."""
    numbers = count(_next_number(job.run))
    try:
        with pump_output(job.work(agent)) as pump:
            for piece in pump.pieces(WAIT_S):
                if piece:
                    _store_piece(job.run, next(numbers), piece)
                    job.take(piece)
                if keeper.must_stop():
                    pump.stop.set()
            return pump.ending()
    finally:
        job.close()


def _next_number(run: Run) -> int:
    """A run that was handed back has output already."""
    last = run.chunks.aggregate(last=Max("number"))["last"]
    return 0 if last is None else last + 1


def _store_piece(run: Run, number: int, piece: bytes) -> None:
    chunk = OutputChunk(run=run, number=number, body=piece)
    # A database that went away may have kept it before it did.
    with_retry(lambda: OutputChunk.objects.bulk_create([chunk], ignore_conflicts=True))


def _end_run(claim: lifecycle.Claim, job: Job, stopped: Stop | None, ending: Ending) -> bool:
    """False when the claim no longer holds the run."""
    gone = ending.leftover is False
    cancelled = stopped is Stop.SHUTDOWN and ending.reason is Reason.CANCELLED
    if cancelled and gone and lifecycle.hand_back(claim):
        return True
    state, problem = _verdict(job, stopped, ending)
    failure = FAILURES.get(ending.reason, "")
    if stopped is Stop.ASKED and not gone:
        failure = CANCEL_FAILED
    if job.unread:
        failure = STORAGE_AWAY  # by which it is found again
    return lifecycle.finish(claim, state, problem, failure)


def _verdict(job: Job, stopped: Stop | None, ending: Ending) -> tuple[RunState, str]:
    state, problem = _outcome(job, stopped, ending)
    if ending.leftover is None:
        problem += " Whether its processes there have ended could not be checked."
    elif ending.leftover:
        problem += " Processes of this run are still alive on the machine; end them there."
    if job.unread:
        problem += f" {lifecycle.WAITS_FOR_STORAGE}"
        state = RunState.PARTLY if state is RunState.SUCCEEDED else state
    return state, problem.strip()


def _outcome(job: Job, stopped: Stop | None, ending: Ending) -> tuple[RunState, str]:
    match ending.reason:
        case Reason.FINISHED:
            return job.verdict(ending)
        case Reason.CANCELLED if stopped is Stop.SHUTDOWN:
            return RunState.LOST, f"Peerpath was stopped during this run. {job.progress_note}"
        case Reason.CANCELLED:
            return RunState.CANCELLED, f"Cancelled. {job.progress_note}"
        case Reason.TIMED_OUT:
            return _partly_or_failed(job), f"It took too long and was stopped. {job.progress_note}"
        case Reason.FLOODED:
            return _partly_or_failed(job), f"It printed far too much and was stopped. {job.progress_note}"
        case Reason.LOST if stopped is Stop.ASKED and ending.leftover is False:
            return RunState.CANCELLED, f"Cancelled while the connection broke. {job.progress_note}"
        case Reason.LOST:
            return RunState.LOST, f"The connection to {job.run.target} broke. {job.progress_note}"


def _partly_or_failed(job: Job) -> RunState:
    return RunState.PARTLY if job.anything else RunState.FAILED
