"""What does not move by itself, of all sessions, and what moves it; for administrators."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Router
from pydantic import BaseModel

from webapp.api.asking import administrator
from webapp.api.auth import READ, RUN
from webapp.api.problems import RefusedError, documented
from webapp.api.routes.across import Found
from webapp.api.routes.runs import Sending, shown
from webapp.triage import queue, runs
from webapp.triage.models import Evidence, Run, RunState
from webapp.triage.stuck import Waiting, stuck

router = Router(tags=["many things at once"])
AWAY = {"responses": {503: documented("No broker is there to take it.")}}


class StuckRun(BaseModel):
    """waits_for: the run on the same machine that it rightly waits for. session_has_enough: it rightly waits
    because as many of its session's runs are at work as may be. sent_at: when its message was sent last."""

    session: UUID
    run: UUID
    number: int
    state: str
    since: datetime
    sent_at: datetime | None
    waits_for: UUID | None
    session_has_enough: bool


class StuckThings(BaseModel):
    """silent: past their lease; waiting: queued for long; unread: names of outputs nobody read."""

    silent: list[StuckRun]
    waiting: list[StuckRun]
    unread: list[Found]


@router.get("/stuck", auth=READ, response=StuckThings)
def what_is_stuck(request: HttpRequest) -> StuckThings:
    """What does not move by itself, of all sessions; for administrators. A run is sent again, ended or
    cancelled, an output read again by its name."""
    administrator(request)
    found = stuck(timezone.now())
    return StuckThings(
        silent=[_stuck(Waiting(run, None, session_has_enough=False)) for run in found.silent],
        waiting=[_stuck(one) for one in found.waiting],
        unread=[_unread(one) for one in found.unread],
    )


def _stuck(found: Waiting) -> StuckRun:
    run, other = found.run, found.waits_for
    return StuckRun(
        session=run.session_id,
        run=run.pk,
        number=run.number,
        state=str(run.state),
        since=run.started_at or run.created_at,
        sent_at=run.sent_at,
        waits_for=other.pk if other else None,
        session_has_enough=found.session_has_enough,
    )


def _unread(evidence: Evidence) -> Found:
    return Found(
        kind="evidence",
        session=evidence.session_id,
        session_title=evidence.session.title,
        ref=evidence.name,
        title=evidence.label,
        page=f"/sessions/{evidence.session_id}/evidence/{evidence.name}",
    )


def _any_run(request: HttpRequest, run_id: UUID) -> Run:
    administrator(request)
    return get_object_or_404(Run.objects.select_related("target"), pk=run_id)


@router.post("/stuck/runs/{uuid:run_id}/send", auth=RUN, response=Sending, openapi_extra=AWAY)
def send_again(request: HttpRequest, run_id: UUID) -> Sending:
    """Sends a queued run's message to the workers again; for administrators. It starts once."""
    run = _any_run(request, run_id)
    if run.state != RunState.QUEUED:
        raise RefusedError(409, f"Run {run.number} is not queued; it is {run.state}.")
    if not queue.send_run(run.pk):
        raise RefusedError(503, "The broker is out of reach; nothing was sent.")
    return shown(run)


@router.post("/stuck/runs/{uuid:run_id}/end", auth=RUN, response=Sending)
def end_as_lost(request: HttpRequest, run_id: UUID) -> Sending:
    """Ends a run whose worker went silent; for administrators. What it brought is kept."""
    run = _any_run(request, run_id)
    if not runs.expire_lease(run.pk, timezone.now()):
        raise RefusedError(409, f"Run {run.number} is not past its lease; it is {run.state}.")
    return shown(_any_run(request, run_id))
