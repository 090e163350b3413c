"""Which of the eight steps of sessions are done, and what each waits for, in a few queries for many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from webapp.triage.models import DiagnosisSession, Run, StoredReading
from webapp.triage.models.run import ENDED

CLOSED = frozenset({"verified", "no_effect", "reverted"})


@dataclass(frozen=True, slots=True)
class Progress:
    """done: ids of steps. decisions: (number, state), the newest last. run: the number and key of one that
    is under way."""

    done: frozenset[str]
    decisions: tuple[tuple[int, str], ...]
    run: tuple[int, UUID] | None


def progress_of(sessions: Sequence[DiagnosisSession]) -> dict[UUID, Progress]:
    keys = [session.pk for session in sessions]
    known = StoredReading.objects.filter(evidence__session__in=keys, kind="known").order_by()
    known = known.exclude(evidence__run__target__beside=True)  # they tell nothing of this machine
    views: dict[UUID, set[str]] = defaultdict(set)
    for key, fact_id in known.values_list("evidence__session_id", "fact_id").distinct():
        views[key].add(fact_id.partition(".")[0])
    decisions: dict[UUID, list[tuple[int, str]]] = defaultdict(list)
    rows = DiagnosisSession.objects.filter(pk__in=keys, decisions__isnull=False)
    columns = rows.order_by("decisions__number").values_list(
        "pk", "decisions__number", "decisions__state"
    )
    for key, number, state in columns:
        decisions[key].append((number, state))
    going = Run.objects.filter(session__in=keys).exclude(state__in=ENDED).order_by("-number")
    runs = {key: (number, pk) for key, number, pk in going.values_list("session", "number", "pk")}
    return {
        session.pk: Progress(
            _done(session, views[session.pk], [state for _, state in decisions[session.pk]]),
            tuple(decisions[session.pk]),
            runs.get(session.pk),
        )
        for session in sessions
    }


def _done(session: DiagnosisSession, views: set[str], decisions: Iterable[str]) -> frozenset[str]:
    states = set(decisions)
    done = {
        "symptom": bool(session.workload.get("observed")),
        "hypothesis": bool(session.first_hypothesis or session.own_words),
        "guest": "guest" in views,
        "path": "bench" in views,
        "host": "host" in views,
        "diagnosis": bool(views & {"guest", "host"}),
        "decide": bool(states),
        "verify": bool(states & CLOSED),
    }
    return frozenset(name for name, is_done in done.items() if is_done)
