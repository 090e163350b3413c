"""The run that a run repeats, and what differs between the two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q, QuerySet, Subquery

from agents.facts import Fact, Reading
from webapp.diagnosis.compare.repeat import RepeatComparison, compare_repeat
from webapp.diagnosis.facts import Facts, Sourced
from webapp.records import reading_codec
from webapp.records.models import DiagnosisSession, Evidence, Run, RunState, StoredReading
from webapp.records.models.run import BENCHMARK
from webapp.runs.benchmark_options import pinned

BROUGHT = (RunState.SUCCEEDED, RunState.PARTLY)
LOOKED_AT = 200  # of the earlier runs on the machine, the newest
SET_ASIDE = "a person said that this output does not count"


@dataclass(frozen=True, slots=True)
class RunComparison:
    """before: the run that was repeated. evidence: of the newer one, with its readings. facts: of both.
    changed_between: a change was carried out between the two, so that only step 8 knows what was intended."""

    before: Run
    evidence: tuple[Evidence, ...]
    facts: Facts
    comparison: RepeatComparison
    changed_between: bool


def runs_with_earlier(runs: QuerySet[Run], run_id: UUID) -> list[Run]:
    """The run first, then those of its kind before it on its machine that brought something; empty where
    `runs`, of one session, has no such run. One query, as for the run alone."""
    this = Run.objects.filter(pk=run_id)
    alike = runs.filter(target__in=this.values("target"), kind__in=this.values("kind"))
    earlier = Q(state__in=BROUGHT, number__lt=Subquery(this.values("number")))
    return list(alike.filter(earlier | Q(pk=run_id)).order_by("-number")[: LOOKED_AT + 1])


def compare_with_earlier(session: DiagnosisSession, run: Run, earlier: Sequence[Run]) -> RunComparison | None:
    """The comparison with the run that this one repeats, in two queries; None, without a query, when it repeats
    none. earlier: from `runs_with_earlier`."""
    before = repeated_run(run, earlier)
    if before is None:
        return None
    rows = Evidence.objects.filter(run__in=(before.pk, run.pk)).defer("body", "stderr")
    outputs = tuple(rows.prefetch_related("readings"))
    sides = [[e for e in outputs if e.run_id == one.pk] for one in (before, run)]
    was, now = (list(_readings(side)) for side in sides)
    return RunComparison(
        before,
        tuple(sides[1]),
        Facts.of([*was, *now], session.epoch),
        compare_repeat(was, now),
        before.epoch != run.epoch,
    )


def repeated_run(run: Run, earlier: Sequence[Run]) -> Run | None:
    """The newest earlier run of the same probes or benchmark with the same arguments; None when this run did not
    end with output."""
    if run.state not in BROUGHT:
        return None
    return next((one for one in earlier if _request_of(one) == _request_of(run)), None)


def _request_of(run: Run) -> tuple[list[str], dict[str, str]]:
    arguments = pinned(run.arguments) if run.kind == BENCHMARK else run.arguments
    return sorted(run.names), arguments


def _readings(outputs: Sequence[Evidence]) -> Iterator[Sourced]:
    """Readings in the order of their outputs. An output that a person set aside gives a reading that was not run."""
    stored = ((evidence, row) for evidence in outputs for row in evidence.readings.all())
    for order, (evidence, row) in enumerate(stored, 1):
        yield Sourced(
            Fact(row.fact_id, "", None).not_run(SET_ASIDE) if evidence.set_aside_at else _decoded(row),
            evidence.name,
            evidence.epoch,
            order,
            evidence.label,
            evidence.created_at,
        )


def _decoded(row: StoredReading) -> Reading[object]:
    columns = (row.fact_id, row.kind, row.value, row.detail, row.lines, row.missing)
    return reading_codec.decode(reading_codec.Row(*columns))
