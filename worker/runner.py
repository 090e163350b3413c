"""Carries out one claimed run: reaches the machine, stores what it says as it says it, ends the run."""

from __future__ import annotations

import logging
from itertools import count

from agents.agent import Agent, AgentError, Ending, Reason
from webapp.triage import credentials, runs
from webapp.triage.models import OutputChunk, Run, RunState
from worker.duties import Duties, Stop
from worker.listening import listening
from worker.measuring import Measuring
from worker.probing import Probing

WAIT_S = 0.25
Job = Probing | Measuring
# How an ending that is nobody's wish is counted; what could not even begin, by its error's class.
FAILURES = {
    Reason.LOST: "ConnectionLost",
    Reason.TIMED_OUT: "TimedOut",
    Reason.FLOODED: "Flooded",
}

logger = logging.getLogger(__name__)


def carry_out(claim: runs.Claim) -> None:
    """Ends the run in one of its ends, unless another worker has taken it over meanwhile."""
    run = Run.objects.select_related("session", "target", "created_by").get(pk=claim.run_id)
    job: Job = Measuring(run, claim) if run.kind == runs.BENCHMARK else Probing(run, claim)
    duties = Duties(claim)
    try:
        agent = credentials.agent_for(run.target, run.created_by)
        if not runs.mark_running(claim, nonce=job.nonce, script_sha256=job.script_sha256):
            return
        ending = _listen(agent, job, duties)
    except (AgentError, credentials.RefusedError) as error:
        runs.finish(claim, RunState.FAILED, str(error), type(error).__name__)
        return
    state, problem = _verdict(job, duties.reason, ending)
    if not runs.finish(claim, state, problem, FAILURES.get(ending.reason, "")):
        logger.warning("run %s was no longer ours when it ended", run.pk)


def _listen(agent: Agent, job: Job, duties: Duties) -> Ending:
    """Stores every piece before anything reads it. However it ends, the remote side is ended too."""
    numbers = count()
    try:
        with listening(job.work(agent)) as heard:
            for piece in heard.pieces(WAIT_S):
                if piece:
                    OutputChunk.objects.create(run=job.run, number=next(numbers), body=piece)
                    job.take(piece)
                if duties.must_stop():
                    heard.stop.set()
            return heard.ending()
    finally:
        job.close()


def _verdict(job: Job, stopped: Stop | None, ending: Ending) -> tuple[RunState, str]:
    state, problem = _outcome(job, stopped, ending)
    if ending.leftover is None:
        problem += " Whether its processes there have ended could not be checked."
    elif ending.leftover:
        problem += " Processes of this run are still alive on the machine; end them there."
    return state, problem.strip()


def _outcome(job: Job, stopped: Stop | None, ending: Ending) -> tuple[RunState, str]:
    match ending.reason:
        case Reason.FINISHED:
            return job.verdict(ending)
        case Reason.CANCELLED if stopped is Stop.SHUTDOWN:
            return RunState.LOST, f"Peerpath was stopped during this run. {job.came}"
        case Reason.CANCELLED:
            return RunState.CANCELLED, f"Cancelled. {job.came}"
        case Reason.TIMED_OUT:
            return _partly(job), f"It took too long and was stopped. {job.came}"
        case Reason.FLOODED:
            return _partly(job), f"It printed far too much and was stopped. {job.came}"
        case Reason.LOST:
            return RunState.LOST, f"The connection to {job.run.target} broke. {job.came}"


def _partly(job: Job) -> RunState:
    return RunState.PARTLY if job.anything else RunState.FAILED
