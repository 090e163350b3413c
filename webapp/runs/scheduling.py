"""Whose run is next: sessions take turns, so that fifty runs of one do not keep another's waiting, and a
machine does one run of a kind at a time."""

from collections import Counter
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from webapp.records.models import Run, RunState, Target
from webapp.records.models.run import ACTIVE

_MACHINE = ("kind", "target__agent", "target__host", "target__port")
Machine = tuple[str, str, str, int]


def in_turn() -> list[UUID]:
    """Queued runs in the order they may start. Sessions with the fewest runs at work come first, each
    with its oldest; left out is what waits for its machine, and what a session has too many of."""
    working = list(Run.objects.filter(state__in=ACTIVE).values_list("session_id", *_MACHINE))
    has = Counter(session_id for session_id, *_ in working)
    busy = {_machine(*where) for _, *where in working}
    ranked: list[tuple[int, int, UUID]] = []
    queued = Run.objects.filter(state=RunState.QUEUED).order_by("created_at")
    for run_id, session_id, *where in queued.values_list("pk", "session_id", *_MACHINE).iterator():
        if (machine := _machine(*where)) in busy or has[session_id] >= settings.RUNS_PER_SESSION:
            continue
        busy.add(machine)
        ranked.append((has[session_id], len(ranked), run_id))
        has[session_id] += 1
    return [run_id for _, _, run_id in sorted(ranked)]


def _machine(kind: str, agent: str, host: str, port: int) -> Machine:
    return (kind, agent, host.lower(), port) if agent != "local" else (kind, agent, "", 0)


def machine_of(run: Run) -> Machine:
    target = run.target
    return _machine(run.kind, target.agent, target.host, target.port)


def same_machine(target: Target) -> QuerySet[Target]:
    """Every session's target of that machine. Two names of one machine are two machines."""
    if target.agent == "local":
        return Target.objects.filter(agent="local").order_by("pk")
    return Target.objects.filter(agent=target.agent, host__iexact=target.host, port=target.port).order_by("pk")


def has_enough(session_id: UUID) -> bool:
    """Whether as many of the session's runs are at work as may be."""
    working = Run.objects.filter(session=session_id, state__in=ACTIVE)
    return working.count() >= settings.RUNS_PER_SESSION


def machine_is_busy(run: Run) -> bool:
    """Whether a run of this kind is at work there. Locks the machine's rows: of two that ask, one waits."""
    machine = list(same_machine(run.target).select_for_update(no_key=True).values_list("pk", flat=True))
    return Run.objects.filter(target__in=machine, kind=run.kind, state__in=ACTIVE).exists()
