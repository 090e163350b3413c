"""A session's workload: its numbers within bounds, and measured points taken over as observed ones."""

from collections.abc import Iterable
from typing import Any

from agents.facts.bench import SERVING, ServingRow
from webapp.accounts.models import User
from webapp.diagnosis.workload import read_workload
from webapp.records.case_facts import facts_of
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import session_save

MOST_POINTS = 8
# Of a workload's number in its own unit; a model of 10⁹ GB is beyond anybody's.
LARGEST = 10**18
NO_USABLE_POINT = "Nothing there can be used: no point without failed requests."


def workload_check(workload: dict[str, Any]) -> None:
    """The tables of a workload file. Raises ValueError or TypeError for what cannot be used."""
    _refuse_large(workload)
    try:
        read_workload(workload)
    except OverflowError as error:
        raise ValueError(str(error)) from error


def _refuse_large(value: Any) -> None:
    if isinstance(value, int | float) and abs(value) > LARGEST:
        raise ValueError(f"{value:.3g} is too large")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_large(item)


def observed_points_save(session: DiagnosisSession, source: str, *, user: User, version: int) -> list[dict[str, Any]]:
    """The load points of the evidence of this name, which are observed from now on; what was observed at
    other concurrencies stays. Nothing is changed where there is no point. Raises EditedMeanwhileError."""
    measured = (item for item in facts_of(session).all(SERVING) if item.source == source)
    points = points_of(row for item in measured for row in item.reading.value or ())
    if points:
        at = {point["concurrency"] for point in points}
        others = [p for p in session.workload.get("observed", []) if p.get("concurrency") not in at]
        observed = sorted([*points, *others], key=lambda point: point["concurrency"])[:MOST_POINTS]
        values = {"workload": {**session.workload, "observed": observed}}
        session_save(session, user=user, version=version, what="symptom", values=values)
    return points


def points_of(rows: Iterable[ServingRow]) -> list[dict[str, Any]]:
    """[[observed]] tables, one a concurrency, a range where it was measured more than once. A point with
    failed requests is left out: its rate is that of another load."""
    rates: dict[int, list[tuple[float, float | None]]] = {}
    for row in rows:
        if row.concurrency and row.output_tokens_per_s and not row.errors:
            rates.setdefault(row.concurrency, []).append((row.output_tokens_per_s, row.total_tokens_per_s))
    points = []
    for concurrency, pairs in sorted(rates.items()):
        point: dict[str, Any] = {
            "concurrency": concurrency,
            "output_tokens_per_s": _range_of([output for output, _ in pairs]),
        }
        totals = [total for _, total in pairs if total]
        points.append(point | ({"total_tokens_per_s": _range_of(totals)} if totals else {}))
    return points


def _range_of(values: list[float]) -> list[float]:
    return [min(values), max(values)]
