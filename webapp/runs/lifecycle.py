"""The life of a run: queued → claimed → running → ended. The only module that changes a run's state.

Every change is one conditional UPDATE, so that a message delivered twice, two workers, or a worker
that comes back from a long pause cannot both believe that a run is theirs.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.utils import timezone

from agents.benchmark import all_benchmarks
from agents.collector import build_script
from agents.facts import View
from agents.interpreter import interpreter_of
from agents.probes import all_probes, probes_for
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Event, Run, RunState, Target
from webapp.records.models.run import ACTIVE, BENCHMARK, PROBES, STORAGE_AWAY
from webapp.runs import queue, scheduling
from webapp.runs.benchmark_options import pinned

LEASE = timedelta(seconds=settings.LEASE_S)
SEND_AGAIN_AFTER = timedelta(seconds=20)
MOST_SENT_AGAIN = 50  # the worker that gets one message works on all queued runs
WAITS_FOR_STORAGE = (
    "The storage of evidence did not take its output. What it printed is kept in the database and becomes"
    " evidence by itself once the storage takes it; nothing has to be run again for that. An administrator"
    " sees on the page Stuck what is wrong with the storage."
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one run, until someone else's fence is higher."""

    run_id: UUID
    fence: int


def queue_probes(
    session: DiagnosisSession,
    target: Target,
    user: User,
    names: Sequence[str] | None = None,
    arguments: Mapping[str, str] | None = None,
) -> Run:
    """A run of these probes, by default of all that the target's role has.

    arguments: what the collector takes, {"VMID": "128"}. Raises ValueError for a probe that is
    unknown or of another role and for an argument that has no safe form, PermissionDenied for a
    local target of anyone but an administrator.
    """
    role = View(target.role)
    chosen = list(names) if names is not None else [probe.id for probe in probes_for(role)]
    known = all_probes()
    wrong = [name for name in chosen if name not in known or known[name].role is not role]
    if wrong or not chosen:
        raise ValueError(f"no such probe for a {role}: {', '.join(wrong) or 'none was named'}")
    variables = {name.upper(): value for name, value in (arguments or {}).items()}
    # A value without a safe form in a script is refused now, while the person is there to mend it.
    build_script([known[name] for name in chosen], role=role, nonce="0" * 16, arguments=variables)
    return _queue(session, target, user, PROBES, chosen, variables)


def queue_benchmark(
    session: DiagnosisSession, target: Target, user: User, name: str, arguments: Mapping[str, str] | None = None
) -> Run:
    """A run of one benchmark. It loads the GPUs, so the caller has asked a person first.

    arguments: {"INTERPRETER": the Python to use, as in agents.interpreter}. Raises ValueError for a
    benchmark that is unknown or only reads pastes and for an interpreter that has no safe form,
    PermissionDenied as for probes.
    """
    benchmark = all_benchmarks().get(name)
    if benchmark is None or not benchmark.can_run:
        raise ValueError(f"no such benchmark to run: {name}")
    interpreter_of((arguments or {}).get("INTERPRETER", ""))
    return _queue(session, target, user, BENCHMARK, [name], dict(arguments or {}))


def queue_repeat(before: Run, user: User) -> Run:
    """The same on the same machine, with its arguments. Raises ValueError and PermissionDenied as the first
    does. It may load the machine, so the caller has asked a person first."""
    session, target = before.session, before.target
    if before.kind == BENCHMARK:
        return queue_benchmark(session, target, user, before.names[0], pinned(before.arguments))
    return queue_probes(session, target, user, before.names, before.arguments)


def _queue(
    session: DiagnosisSession, target: Target, user: User, kind: str, names: list[str], arguments: dict[str, str]
) -> Run:
    if target.session_id != session.pk:
        raise ValueError("the target belongs to another session")
    if target.agent == "local" and not user.is_staff:
        raise PermissionDenied("Only an administrator may run something on this machine itself.")
    with transaction.atomic():
        locked = DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        last = Run.objects.filter(session=session).aggregate(last=Max("number"))["last"] or 0
        run = Run.objects.create(
            session=locked,
            target=target,
            number=last + 1,
            kind=kind,
            names=names,
            arguments=arguments,
            epoch=locked.epoch,
            created_by=user,
        )
        Event.record(session, "run_queued", user, **_event_fields(run), names=names, target=str(target))
        queue.send_run_after_commit(run.pk)
    return run


def request_cancel(run: Run, user: User) -> bool:
    """Ends a waiting run at once and flags a working one; False when it had ended already."""
    now = timezone.now()
    with transaction.atomic():
        waiting = Run.objects.filter(pk=run.pk, state=RunState.QUEUED).update(
            state=RunState.CANCELLED, cancel_requested_at=now, ended_at=now, problem="Cancelled before it started."
        )
        flagged = waiting or Run.objects.filter(pk=run.pk, state__in=ACTIVE, cancel_requested_at=None).update(
            cancel_requested_at=now
        )
        if flagged:
            Event.record(run.session, "run_cancel_requested", user, **_event_fields(run))
        if waiting:
            Event.record(run.session, "run_finished", None, **_event_fields(run), state="cancelled")
    return bool(flagged)


def claim_next() -> Claim | None:
    """Takes the queued run whose turn it is; None when none may start now."""
    return next(filter(None, map(claim, scheduling.in_turn())), None)


def claim(run_id: UUID) -> Claim | None:
    """Takes a queued run for as long as a lease lasts; None when it is not queued, or its machine is at
    work on one of its kind."""
    now = timezone.now()
    with transaction.atomic():
        run = Run.objects.select_related("target").filter(pk=run_id).first()
        if run is None or scheduling.machine_is_busy(run):
            return None
        won = Run.objects.filter(pk=run_id, state=RunState.QUEUED).update(
            state=RunState.CLAIMED, fence=F("fence") + 1, lease_expires_at=now + LEASE, started_at=now
        )
        if not won:
            return None
        fence = Run.objects.values_list("fence", flat=True).get(pk=run_id)
    return Claim(run_id, fence)


def waits_for(run: Run) -> Run | None:
    """The run, of any session, that a queued one waits for; None when it waits for none."""
    if run.state != RunState.QUEUED:
        return None
    machine = scheduling.same_machine(run.target).values("pk")
    return Run.objects.filter(target__in=machine, kind=run.kind, state__in=ACTIVE).first()


def wait_reason(run: Run) -> str:
    """What a queued run waits for, and why; "" when for nothing but a worker. Another session's run is not named:
    the reader may not see that session."""
    other = waits_for(run)
    if other is not None:
        own = other.session_id == run.session_id
        which = f"run {other.number}" if own else "another session’s run on this machine"
        return which + ": two at once would measure each other" * (run.kind == BENCHMARK)
    if run.state == RunState.QUEUED and scheduling.has_enough(run.session_id):
        most = settings.RUNS_PER_SESSION
        return f"a run of this session to end: at most {most} of a session are at work at once"
    return ""


def _claimed_run(claimed: Claim) -> QuerySet[Run]:
    return Run.objects.filter(pk=claimed.run_id, fence=claimed.fence, state__in=ACTIVE)


def renew(claimed: Claim) -> bool:
    """Extends the lease; False when the run is no longer this claim's, and work must stop."""
    return bool(_claimed_run(claimed).update(lease_expires_at=timezone.now() + LEASE))


def cancel_requested(claimed: Claim) -> bool:
    return _claimed_run(claimed).exclude(cancel_requested_at=None).exists()


def mark_running(claimed: Claim, *, nonce: str = "", script_sha256: str = "") -> bool:
    """Notes that something was sent to the target, and what; False when the claim is lost."""
    with transaction.atomic():
        won = Run.objects.filter(pk=claimed.run_id, fence=claimed.fence, state=RunState.CLAIMED).update(
            state=RunState.RUNNING, nonce=nonce, script_sha256=script_sha256
        )
        if won:
            run = Run.objects.select_related("session").get(pk=claimed.run_id)
            Event.record(run.session, "run_started", None, **_event_fields(run))
    return bool(won)


def note_process_group(claimed: Claim, process_group: int) -> None:
    _claimed_run(claimed).update(process_group=process_group)


def finish(claimed: Claim, state: RunState, problem: str = "", failure: str = "") -> bool:
    """Ends the run; False, and nothing changed, when this claim no longer holds it. failure: the kind
    of problem, for counting."""
    if not state.ended:
        raise ValueError(f"{state} is not an end")
    return _end_run(_claimed_run(claimed), claimed.run_id, state, problem, failure)


def hand_back(claimed: Claim) -> bool:
    """Queues the run again, for another worker; False when this claim no longer holds it. Only for probes: they
    read, so a second time does no harm. Output that arrived is kept."""
    with transaction.atomic():
        won = (
            _claimed_run(claimed)
            .filter(kind=PROBES, cancel_requested_at=None)
            .update(state=RunState.QUEUED, lease_expires_at=None, started_at=None, process_group=None)
        )
        if won:
            run = Run.objects.select_related("session").get(pk=claimed.run_id)
            about = _event_fields(run) | {"script_sha256": run.script_sha256}
            Event.record(run.session, "run_handed_back", None, **about)
            queue.send_run_after_commit(run.pk)
    return bool(won)


def _end_run(run: QuerySet[Run], run_id: UUID, state: RunState, problem: str, failure: str = "") -> bool:
    with transaction.atomic():
        won = run.update(state=state, problem=problem, failure=failure, ended_at=timezone.now(), lease_expires_at=None)
        if won:
            ended = Run.objects.select_related("session").get(pk=run_id)
            context = {"run_id": str(run_id), "failure": failure}
            logger.info("run ended: %s", state, extra=context)
            about = _event_fields(ended) | {"state": str(state), "problem": problem}
            Event.record(ended.session, "run_finished", None, **about)
    return bool(won)


def end_waiting_for_storage(run: Run, note: str, failure: str = "") -> bool:
    """Ends the wait of a run whose output the storage did not take. note: what became of the output. The run's
    state stays. False when another process did it before."""
    problem = run.problem.replace(WAITS_FOR_STORAGE, note)
    with transaction.atomic():
        waited = Run.objects.filter(pk=run.pk, failure=STORAGE_AWAY)
        won = waited.update(failure=failure, problem=problem)
        if won:
            about = _event_fields(run) | {"problem": problem}
            Event.record(run.session, "run_read_late", None, **about)
    return bool(won)


def expire_leases(now: datetime) -> int:
    """Ends runs whose worker went silent as lost; what they brought is kept. Returns how many.

    Nothing is started again by itself: a benchmark may still be loading the GPUs.
    """
    overdue = Run.objects.filter(state__in=ACTIVE, lease_expires_at__lt=now)
    return sum(expire_lease(pk, now) for pk in list(overdue.values_list("pk", flat=True)))


def expire_lease(run_id: UUID, now: datetime) -> bool:
    """Ends this run as lost if its lease has run out; False when it moves, or has ended."""
    overdue = Run.objects.filter(pk=run_id, state__in=ACTIVE, lease_expires_at__lt=now)
    problem = "The worker stopped answering. What had arrived by then is kept."
    if overdue.filter(kind=BENCHMARK).exists():
        problem += " Look whether the GPUs are free before it is run again."
    return _end_run(overdue, run_id, RunState.LOST, problem, "LeaseExpired")


def resend_lost_messages(now: datetime) -> int:
    """Sends queued runs again whose message is 20 s old or was never sent. Returns how many."""
    stale = now - SEND_AGAIN_AFTER
    forgotten = Run.objects.filter(state=RunState.QUEUED).filter(
        Q(sent_at__lt=stale) | Q(sent_at=None, created_at__lt=stale)
    )
    oldest = forgotten.order_by("created_at").values_list("pk", flat=True)[:MOST_SENT_AGAIN]
    return sum(queue.send_run(pk) for pk in oldest)


def _event_fields(run: Run) -> dict[str, Any]:
    return {"run": str(run.pk), "number": run.number, "what": run.kind}
