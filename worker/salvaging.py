"""What a worker had stored raw when it was killed becomes evidence, as it would have itself."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import DatabaseError

from agents.framing import Frame, FrameReader
from webapp.triage import intake, runs
from webapp.triage.models import Run, RunState

logger = logging.getLogger(__name__)

_LATE = timedelta(minutes=1)  # a reconciler that was killed half-way does it in its next pass


def salvage_lost(now: datetime) -> int:
    """Reads the output of runs that lately ended without their worker: it went silent, or broke. Returns
    how many had brought something. Doing it twice changes nothing."""
    lately = Run.objects.filter(
        state__in=[RunState.LOST, RunState.FAILED],
        failure__in=["LeaseExpired", "OurOwn"],
        ended_at__gte=now - _LATE,
    )
    return sum(map(_tried, lately.select_related("session", "target", "created_by")))


def _tried(run: Run) -> bool:
    """False also where it fails: one run's output must not end who puts right all the others."""
    try:
        return _salvage(run)
    except DatabaseError:
        raise
    except Exception:  # the task boundary, as for the worker that read it first
        logger.exception("what run %s had brought could not be read", run.pk)
        return False


def _salvage(run: Run) -> bool:
    pieces = [bytes(body) for body in run.chunks.values_list("body", flat=True)]
    if run.kind == runs.BENCHMARK:
        if pieces and not run.evidence.exists():
            intake.take_benchmark_output(run, b"".join(pieces))
        return bool(pieces)
    reader = FrameReader(run.nonce)
    events = [event for piece in pieces for event in reader.feed(piece)]
    whole = [event for event in events if isinstance(event, Frame) and event.probe_id in run.names]
    if whole:
        intake.take_frames(run, whole)
    return bool(whole)
