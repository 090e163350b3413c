"""What a message starts. A task is thin: it claims the run and lets the runner work."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import close_old_connections

from webapp.triage import runs
from webapp.triage.models import RunState
from webapp.triage.queue import RUN_TASK
from worker import runner
from worker.celery_app import app

logger = logging.getLogger(__name__)


@app.task(name=RUN_TASK)  # type: ignore[untyped-decorator]
def run(run_id: str) -> None:
    """Does one run, unless it is done, cancelled, someone else's, or must wait for its machine."""
    close_old_connections()
    try:
        claim = runs.claim(UUID(run_id))
        if claim is not None:
            _work(claim)
    finally:
        close_old_connections()


def _work(claim: runs.Claim) -> None:
    try:
        runner.carry_out(claim)
    except Exception:  # the task boundary: our own mistake must not look like a machine's answer
        logger.exception("run %s broke", claim.run_id)
        runs.finish(
            claim,
            RunState.FAILED,
            "Peerpath itself failed; its log has the details. What had arrived by then is kept.",
            "OurOwn",
        )
