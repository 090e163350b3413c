"""Work that is stuck: runs past their lease, runs that wait too long, outputs that were never parsed."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, QuerySet

from webapp.records.models import Evidence, Run, RunState, StoredReading
from webapp.records.models.run import ACTIVE, STORAGE_AWAY
from webapp.records.received import BUNDLE
from webapp.runs import scheduling

# A message takes milliseconds and is sent again after 20 s: after so long no worker takes any.
LONG = timedelta(minutes=2)
SHOWN = 100
# A reading that was cut short is found within this many outputs; older ones are another day's.
NEWEST = 10_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """waits_for: the run on the same machine that it rightly waits for. session_has_enough: as many of its
    session's runs are at work as may be."""

    run: Run
    waits_for: Run | None
    session_has_enough: bool


@dataclass(frozen=True, slots=True)
class Stuck:
    """At most SHOWN of each, the oldest first."""

    silent: tuple[Run, ...]
    waiting: tuple[Waiting, ...]
    unread: tuple[Evidence, ...]
    for_storage: tuple[Run, ...]  # that ended, and whose output the storage has not taken

    @property
    def nothing(self) -> bool:
        return not (self.silent or self.waiting or self.unread or self.for_storage)


def stuck(now: datetime) -> Stuck:
    waiting = Run.objects.filter(state=RunState.QUEUED, created_at__lt=now - LONG)
    return Stuck(
        tuple(_oldest_runs(Run.objects.filter(state__in=ACTIVE, lease_expires_at__lt=now))),
        tuple(_waiting_runs(list(_oldest_runs(waiting)))),
        tuple(unread()[:SHOWN]),
        tuple(_oldest_runs(Run.objects.filter(failure=STORAGE_AWAY))),
    )


def _waiting_runs(runs: list[Run]) -> Iterator[Waiting]:
    """Each run with the run that holds its machine, and whether its session has reached its limit."""
    working = list(Run.objects.filter(state__in=ACTIVE).select_related("target"))
    busy = {scheduling.machine_of(run): run for run in working}
    has = Counter(run.session_id for run in working)
    for run in runs:
        enough = has[run.session_id] >= settings.RUNS_PER_SESSION
        yield Waiting(run, busy.get(scheduling.machine_of(run)), enough)


def unread() -> QuerySet[Evidence]:
    """Outputs without any reading and without unrecognised lines: their parsing was cut short."""
    last = Evidence.objects.order_by().aggregate(last=Max("pk"))["last"] or 0
    readings = StoredReading.objects.filter(evidence=OuterRef("pk"))
    outputs = Evidence.objects.filter(
        ~Exists(readings), pk__gt=last - NEWEST, unplaced=[], purged_at=None, size_bytes__gt=0
    )
    return outputs.exclude(reader=BUNDLE).defer("body", "stderr").select_related("session").order_by("pk")


def _oldest_runs(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.select_related("session", "target", "created_by").order_by("created_at")[:SHOWN]
