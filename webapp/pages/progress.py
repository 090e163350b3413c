"""The finished steps of many sessions, and the event that each session waits for, in one query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Subquery

from agents.facts.bench import TELEMETRY
from webapp.records.models import DiagnosisSession, Run, StoredReading
from webapp.records.models.run import ENDED
from webapp.records.models.session import SessionQuerySet

# “not_verified” is not among them: it does not finish step 8.
CLOSED = frozenset({"verified", "no_effect", "reverted"})
# A draft or a proposal is not a decision yet.
DECIDED = CLOSED | {"approved", "applied", "not_verified"}
# A decision in one of these states waits for a person.
WAITING = frozenset({"draft", "proposed", "approved", "applied"})


@dataclass(frozen=True, slots=True)
class Progress:
    """done: ids of steps. knows: views with known facts. came: the person of a link whose answer nobody has accepted
    yet; said_by: the person who answered the questions about the host by a link; "" for nobody. waits: number and
    state of the newest decision that waits for a person. run: the number and key of a run under way."""

    done: frozenset[str]
    knows: frozenset[str]
    came: str
    said_by: str
    waits: tuple[int, str] | None
    run: tuple[int, UUID] | None


def with_progress(sessions: SessionQuerySet) -> SessionQuerySet:
    """Adds the columns that `progress_of` needs, so that it sends no query; for sessions that are only read."""
    return sessions.annotate(**_COLUMNS)


def progress_of(sessions: Sequence[DiagnosisSession]) -> dict[UUID, Progress]:
    if not all(hasattr(session, "reads_guest") for session in sessions):
        keys = [session.pk for session in sessions]
        sessions = list(with_progress(DiagnosisSession.objects.filter(pk__in=keys)))
    return {session.pk: _progress_of_row(session) for session in sessions}


def _progress_of_row(row: DiagnosisSession) -> Progress:
    columns = vars(row)
    waits, run = columns["waits_number"], columns["run_number"]
    return Progress(
        _steps_done(row),
        frozenset(view for view in _VIEWS if columns[f"reads_{view}"]),
        columns["came"] or "",
        columns["said_by"] or "",
        (waits, columns["waits_state"]) if waits is not None else None,
        (run, columns["run_key"]) if run is not None else None,
    )


def _steps_done(row: DiagnosisSession) -> frozenset[str]:
    columns = vars(row)
    done = {
        "symptom": bool(row.workload.get("observed")),
        "hypothesis": bool(row.first_hypothesis or row.own_words),
        "guest": columns["reads_guest"],
        "path": columns["reads_bench"],
        "host": columns["reads_host"] and not columns["came"],
        "diagnosis": columns["reads_guest"] or columns["reads_host"],
        "decide": columns["decided"],
        "verify": columns["closed"],
    }
    return frozenset(name for name, is_done in done.items() if is_done)


def _has_readings(view: str) -> Exists:
    """Whether the session's own machine has a known fact of this view; machines for comparison do not count.
    Telemetry of the GPUs measures no path, so it does not count either."""
    known = StoredReading.objects.of_the_case().filter(
        evidence__session=OuterRef("pk"), kind="known", fact_id__startswith=f"{view}."
    )
    return Exists(known.exclude(fact_id=TELEMETRY.id))


_HERE = DiagnosisSession.objects.filter(pk=OuterRef("pk")).order_by()
_WAITS = _HERE.filter(decisions__state__in=WAITING).order_by("-decisions__number")
_GOING = Run.objects.filter(session=OuterRef("pk")).exclude(state__in=ENDED).order_by("-number")
_CAME = _HERE.filter(
    links__received_at__isnull=False,
    links__accepted_at=None,
    links__given__isnull=False,
    links__given__evidence__set_aside_at=None,
).order_by("-links__received_at")
_SAID = _HERE.filter(links__answers__has_any_keys=["host_root", "why_vm", "may_change"])
_VIEWS = ("guest", "bench", "host")
_COLUMNS: dict[str, Any] = {
    **{f"reads_{view}": _has_readings(view) for view in _VIEWS},
    "came": Subquery(_CAME.values("links__person")[:1]),
    "said_by": Subquery(_SAID.order_by("-links__asked_at").values("links__person")[:1]),
    "decided": Exists(_HERE.filter(decisions__state__in=DECIDED)),
    "closed": Exists(_HERE.filter(decisions__state__in=CLOSED)),
    "waits_number": Subquery(_WAITS.values("decisions__number")[:1]),
    "waits_state": Subquery(_WAITS.values("decisions__state")[:1]),
    "run_number": Subquery(_GOING.values("number")[:1]),
    "run_key": Subquery(_GOING.values("pk")[:1]),
}
