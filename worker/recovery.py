"""Reads output that was stored raw but not read: the worker was killed, or the evidence storage was away."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError

from agents.framing import Frame, FrameReader
from webapp.records import blob_store, intake
from webapp.records.models import Run, RunState
from webapp.records.models.run import BENCHMARK, STORAGE_AWAY
from webapp.runs import lifecycle
from worker.database_retry import with_retry

logger = logging.getLogger(__name__)

_LATE = timedelta(minutes=1)  # a reconciler that was killed half-way does it in its next pass
_AT_ONCE = 20  # the reconciler ends lost runs, too, in the same pass
_READ_LATE = "The storage of evidence was away when it ended; its output was read afterwards."
_NOTHING_LEFT = "The storage of evidence was away when it ended, and of its output nothing is left to read."
_NOT_READ = "The storage of evidence was away when it ended; its output could not be read later: see the log."


def try_store(run: Run, store: Callable[[], object]) -> bool:
    """Returns False when the evidence storage does not take it. The output is already raw in the database, and is
    read from there later."""
    try:
        with_retry(store)
    except blob_store.LostError as error:
        logger.warning("the output of run %s waits in the database: %s", run.pk, error)
        return False
    return True


def recover_waiting() -> int:
    """Reads the output of runs that ended while the storage was away; returns how many. Ends at the first output
    that the storage does not take: each question takes seconds while the storage is silent."""
    waiting = Run.objects.filter(failure=STORAGE_AWAY).order_by("ended_at")
    read = 0
    for run in waiting.select_related("session", "target", "created_by")[:_AT_ONCE]:
        try:
            note = _READ_LATE if _recover(run) else _NOTHING_LEFT
            read += lifecycle.end_waiting_for_storage(run, note)
        except blob_store.LostError:
            break
        except DatabaseError:
            raise
        except Exception:  # the task boundary; it would fail the same way every few seconds
            logger.exception("what run %s had brought could not be read", run.pk)
            lifecycle.end_waiting_for_storage(run, _NOT_READ, "OurOwn")
    return read


def recover_lost(now: datetime) -> int:
    """Reads the output of runs that lately ended without their worker, because it went silent or broke. Returns how
    many had output. Repeating it changes nothing."""
    lately = Run.objects.filter(
        state__in=[RunState.LOST, RunState.FAILED], failure__in=["LeaseExpired", "OurOwn"], ended_at__gte=now - _LATE
    )
    return sum(map(_recover_alone, lately.select_related("session", "target", "created_by")))


def _recover_alone(run: Run) -> bool:
    """Like _recover, but False when it fails: one run's output must not stop the reconciler's work on the others."""
    try:
        return _recover(run)
    except DatabaseError:
        raise
    except Exception:  # the task boundary, as for the worker that read it first
        logger.exception("what run %s had brought could not be read", run.pk)
        return False


def _recover(run: Run) -> bool:
    pieces = [bytes(body) for body in run.chunks.values_list("body", flat=True)]
    if run.kind == BENCHMARK:
        if pieces and not run.evidence.exists():
            intake.take_benchmark_output(run, b"".join(pieces))
        return bool(pieces)
    reader = FrameReader(run.nonce)
    events = [event for piece in pieces for event in reader.feed(piece)]
    if run.failure == STORAGE_AWAY:  # no more output arrives
        events += reader.close()
    frames = [event for event in events if isinstance(event, Frame) and event.probe_id in run.names]
    if frames:
        intake.take_frames(run, frames)
    return bool(frames)
