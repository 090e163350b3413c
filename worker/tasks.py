"""The Celery tasks. Each is thin: it claims the run and lets the runner work."""

import logging
from typing import Any
from uuid import UUID

from celery.exceptions import Reject
from django.db import close_old_connections, connections, transaction
from django.utils import timezone

from webapp import logs
from webapp.notices import deliveries, fan_out
from webapp.notices.fan_out import sessions_with_news
from webapp.notices.queue import DELIVER_TASK, FOLLOW_TASK, send_delivery
from webapp.records.models import DiagnosisSession, RunState
from webapp.review.digests import digest_refresh
from webapp.runs import lifecycle
from webapp.runs.queue import REQUEST_ID, RUN_TASK
from worker import gc_freeze, lease, runner
from worker.celery_app import app
from worker.database_retry import with_retry
from worker.slots import Slot

FOLLOWED_AT_ONCE = 50

logger = logging.getLogger(__name__)


@app.task(name=RUN_TASK, bind=True)  # type: ignore[untyped-decorator]
def run(task: Any, run_id: str) -> None:
    """Carries out queued runs in the order of the queue, until none may start: the message only says that there is
    work, and names the run it was sent for. A worker that is about to end leaves the rest to others."""
    if lease.shutting_down.is_set():
        raise Reject("this worker ends", requeue=True)
    request_id = (task.request.headers or {}).get(REQUEST_ID) or ""
    close_old_connections()
    try:
        with logs.belonging_to(request_id=request_id, task_id=task.request.id, run_id=run_id):
            _work_queue()
    finally:
        close_old_connections()


def _work_queue() -> None:
    while not lease.shutting_down.is_set() and (claim := lifecycle.claim_next()):
        slot = Slot(_stand_in)
        with logs.belonging_to(run_id=str(claim.run_id)):
            logger.info("run claimed, fence %d", claim.fence)
            _carry_out(claim, slot)
        slot.take_back()
        gc_freeze.collect_cycles()


def _stand_in() -> None:
    try:
        _work_queue()
    finally:
        connections.close_all()  # the thread ends


@app.task(name=FOLLOW_TASK)  # type: ignore[untyped-decorator]
def follow() -> None:
    """Makes notices and digests of new events, oldest first, until none is left."""
    close_old_connections()
    try:
        # What cannot be followed now is left to the next message; it must not be tried for ever.
        tried: set[UUID] = set()
        while not lease.shutting_down.is_set():
            waiting = [pk for pk in sessions_with_news(FOLLOWED_AT_ONCE + len(tried)) if pk not in tried]
            if not waiting:
                break
            tried.update(waiting)
            for session_id in waiting:
                _follow(session_id)
        deliveries.forget_old(timezone.now())
    finally:
        close_old_connections()


def _follow(session_id: UUID) -> None:
    """The digest first: while there is news, what died half-way is done again."""
    for step in (_digest, _notify):
        try:
            step(session_id)
        except Exception:  # the task boundary: one session's fault must not keep others from their news
            logger.exception("%s failed for session %s", step.__name__, session_id)


def _digest(session_id: UUID) -> None:
    session = DiagnosisSession.objects.filter(pk=session_id).first()
    if session is not None:
        with transaction.atomic():
            digest_refresh(session)


def _notify(session_id: UUID) -> None:
    for delivery_id in fan_out.follow(session_id):
        send_delivery(delivery_id)


@app.task(name=DELIVER_TASK)  # type: ignore[untyped-decorator]
def deliver(delivery_id: str) -> None:
    close_old_connections()
    try:
        deliveries.deliver(UUID(delivery_id))
    finally:
        close_old_connections()


def _carry_out(claim: lifecycle.Claim, slot: Slot) -> None:
    try:
        runner.carry_out(claim, slot)
    except Exception:  # the task boundary: our own mistake must not look like a machine's answer
        logger.exception("run %s broke", claim.run_id)
        problem = "Peerpath itself failed; its log has the details. What had arrived by then is kept."
        with_retry(lambda: lifecycle.finish(claim, RunState.FAILED, problem, "OurOwn"))
