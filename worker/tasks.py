"""What a message starts. A task is thin: it claims the run and lets the runner work."""

from __future__ import annotations

import logging
from typing import Any

from celery.exceptions import Reject
from django.db import close_old_connections

from webapp.config import logs
from webapp.triage import runs
from webapp.triage.models import RunState
from webapp.triage.queue import REQUEST_ID, RUN_TASK
from worker import duties, runner
from worker.celery_app import app
from worker.patience import patiently

logger = logging.getLogger(__name__)


@app.task(name=RUN_TASK, bind=True)  # type: ignore[untyped-decorator]
def run(task: Any, run_id: str) -> None:
    """Works on what waits, whoever's turn it is, until nothing may start: a message says that there is
    work, and names the run it was sent for. A worker that is about to end leaves it to the others."""
    if duties.shutting_down.is_set():
        raise Reject("this worker ends", requeue=True)
    request_id = (task.request.headers or {}).get(REQUEST_ID) or ""
    close_old_connections()
    try:
        with logs.belonging_to(request_id=request_id, task_id=task.request.id, run_id=run_id):
            while not duties.shutting_down.is_set() and (claim := runs.claim_next()):
                with logs.belonging_to(run_id=str(claim.run_id)):
                    logger.info("run claimed, fence %d", claim.fence)
                    _work(claim)
    finally:
        close_old_connections()


def _work(claim: runs.Claim) -> None:
    try:
        runner.carry_out(claim)
    except Exception:  # the task boundary: our own mistake must not look like a machine's answer
        logger.exception("run %s broke", claim.run_id)
        said = "Peerpath itself failed; its log has the details. What had arrived by then is kept."
        patiently(lambda: runs.finish(claim, RunState.FAILED, said, "OurOwn"))
