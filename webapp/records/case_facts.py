"""The facts of a session, as the diagnosis takes them."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from agents.facts import Fact, Reading
from agents.facts.workload import GOAL, HOST_ROOT, MODEL, NOTES, OBSERVED, PARALLELISM
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.workload import read_workload
from webapp.records import reading_codec
from webapp.records.models import DiagnosisSession, StoredReading

_TABLES: dict[str, Fact[Any]] = {
    "model": MODEL,
    "parallelism": PARALLELISM,
    "observed": OBSERVED,
    "goal": GOAL,
    "host": HOST_ROOT,
    "notes": NOTES,
}
_COLUMNS = ("fact_id", "kind", "value", "detail", "lines", "missing")


def facts_of(session: DiagnosisSession) -> Facts:
    """Every stored reading of the session's own machines and what the operator says. One query."""
    return facts_until(session, [None])[0]


def facts_until(session: DiagnosisSession, times: Iterable[int | None]) -> list[Facts]:
    """The facts at each of these times: keys of the last evidence that counts, None for now. One query."""
    stored = list(_stored_readings(session))
    return [
        _with_said(session, [item for _, item in stored], session.epoch)
        if until is None
        else _with_said(session, [item for key, item in stored if key <= until])
        for until in times
    ]


def _with_said(session: DiagnosisSession, stored: list[Sourced], changes: int = 0) -> Facts:
    # A person's answers are as new as the newest evidence; they must not make a later epoch.
    newest = max((item.epoch for item in stored), default=0)
    return Facts.of([*stored, *_workload_readings(session, newest)], changes)


def _stored_readings(session: DiagnosisSession) -> Iterator[tuple[int, Sourced]]:
    """Each reading with the key of its evidence."""
    readings = StoredReading.objects.of_the_case().filter(evidence__session=session)
    rows = readings.order_by("evidence_id", "id").values_list(
        *_COLUMNS,
        "evidence__reader",
        "evidence__sha256",
        "evidence__epoch",
        "evidence__label",
        "evidence__created_at",
        "evidence_id",
    )
    for order, (*columns, reader, sha256, epoch, label, at, key) in enumerate(rows, 1):
        reading: Reading[object] = reading_codec.decode(reading_codec.Row(*columns))
        yield key, Sourced(reading, f"{reader}@{sha256[:12]}", epoch, order, label, at)


def _workload_readings(session: DiagnosisSession, epoch: int) -> Iterator[Sourced]:
    if not session.workload:
        return
    text = json.dumps(session.workload, sort_keys=True)
    source = f"workload@{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    for table, content in session.workload.items():
        for reading in _table_readings(table, content):
            yield Sourced(reading, source, epoch)


def _table_readings(table: str, content: object) -> tuple[Reading[Any], ...]:
    """Table by table, so that one an older version saved cannot hide the others."""
    try:
        return read_workload({table: content})
    except ValueError as error:
        fact = _TABLES.get(table)
        return (fact.unreadable(str(error)),) if fact else ()
