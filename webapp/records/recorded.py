"""Stage 3 of intake: one transaction writes what was read as readings, lines without a reader, doubts and the event."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db import transaction

from agents.assignment import LineAssignment, apply_assignments, doubts
from agents.facts import Reading, View
from agents.raw_reading import Item, LineRange, RawReading
from webapp.accounts.models import User
from webapp.records import blob_store, reading_codec
from webapp.records.models import DiagnosisSession, Event, Evidence, Run, StoredReading
from webapp.records.reading import Read, parsers_version
from webapp.records.reading_versions import EarlierAnswer, earlier_answer
from webapp.records.received import Received, columns_of, frame_output


@dataclass(frozen=True, slots=True)
class ReadPart:
    """One output within a text. lines: first and last. earlier: a different answer to the same question that was
    recorded before."""

    reader: str
    title: str
    view: View
    readings: tuple[Reading[Any], ...]
    lines: LineRange | None = None
    earlier: EarlierAnswer | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of one text.

    duplicate: `evidence` stores the same bytes since before, and nothing was recorded again. unplaced: line ranges
    that no reader took. notes: sentences for the person who sent it.
    """

    evidence: Evidence
    duplicate: bool
    understood: tuple[ReadPart, ...]
    unplaced: tuple[LineRange, ...]
    notes: tuple[str, ...] = ()


def record_text(text: Read, user: User | None) -> Recorded:
    """Records a text, unless that was done before: the same bytes again, or a form sent twice. A text whose reading
    a crash prevented is recorded when it comes again."""
    evidence = text.evidence
    frames = [(item, frame_output(item.frame)) for item in text.reading.items if item.frame]
    blobs = [blob_store.store(output.raw) for _, output in frames]
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=evidence.session_id)
        duplicate, reading = _is_recorded(evidence), _as_assigned(evidence, text)
        if not duplicate:
            _record_frames(evidence, frames, blobs)
            _record_lines(evidence, reading)
            _record_event(evidence, text.reading.items, user)
    parts = tuple(_read_part(item, evidence) for item in reading.items)
    return Recorded(evidence, duplicate, parts, reading.unrecognised, reading.notes)


def record_answers(run: Run, answers: Sequence[Read]) -> None:
    """Records a run's answers; those that were recorded before are left as they are."""
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        recorded = set(run.evidence.filter(readings__isnull=False).values_list("reader", flat=True))
        create_readings(
            (answer.evidence, item)
            for answer in answers
            for item in answer.reading.items
            if item.reader not in recorded
        )


def record_again(output: Read) -> bool:
    """Replaces the readings of stored evidence. Whether they differ from those before."""
    evidence = output.evidence
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=evidence.session_id)
        before = _evidence_columns(evidence)
        evidence.readings.all().delete()
        record_first(output)
        return _evidence_columns(evidence) != before


def record_first(output: Read) -> None:
    """Records evidence that has no readings, in the caller's transaction. A bundle's frames are evidence of their
    own."""
    _record_lines(output.evidence, _as_assigned(output.evidence, output))


def create_readings(items: Iterable[tuple[Evidence, Item]]) -> None:
    StoredReading.objects.bulk_create(
        StoredReading(
            evidence=evidence, reader=item.reader, parsed_by=parsers_version(), **asdict(reading_codec.encode(reading))
        )
        for evidence, item in items
        for reading in item.readings
    )


def _is_recorded(evidence: Evidence) -> bool:
    evidence.refresh_from_db(fields=["unplaced", "doubts"])
    frames = Evidence.objects.filter(
        session=evidence.session_id, epoch=evidence.epoch, meta__bundle=evidence.sha256, set_aside_at=None
    )
    return bool(evidence.unplaced) or evidence.readings.exists() or frames.exists()


def _record_frames(bundle: Evidence, frames: Sequence[tuple[Item, Received]], blobs: Sequence[blob_store.Blob]) -> None:
    """A bundle's frames are evidence of their own, cited by their own hash and lines."""
    owner = {"session": bundle.session, "epoch": bundle.epoch, "created_by": bundle.created_by}
    outputs = (
        replace(output, origin=bundle.origin, label=bundle.label, meta={**output.meta, "bundle": bundle.sha256})
        for _, output in frames
    )
    rows = [(blob, columns_of(output) | owner) for blob, output in zip(blobs, outputs, strict=True)]
    stored = Evidence.store_all(rows)
    create_readings((evidence, item) for evidence, (item, _) in zip(stored, frames, strict=True))


def _record_lines(evidence: Evidence, reading: RawReading) -> None:
    evidence.unplaced = [list(lines) for lines in reading.unrecognised]
    evidence.doubts = [[*doubt.lines, doubt.view.value, list(doubt.readers)] for doubt in doubts(reading)]
    evidence.save(update_fields=["unplaced", "doubts"])
    create_readings((evidence, item) for item in reading.items if not item.frame)


def _record_event(evidence: Evidence, items: Iterable[Item], user: User | None) -> None:
    about = {"evidence": evidence.pk, "name": evidence.name, "label": evidence.label, "origin": evidence.origin}
    Event.record(evidence.session, "evidence_taken", user, **about, readers=[item.reader for item in items])


def _as_assigned(evidence: Evidence, output: Read) -> RawReading:
    """The reading with those lines read anew of which a person said what they are; the last word counts."""
    assignments: dict[LineRange, LineAssignment] = {}
    for row in evidence.assignments.all():
        lines = (row.first, row.last)
        assignments.pop(lines, None)
        if row.reader or row.view:
            assignments[lines] = LineAssignment(lines, row.reader, View(row.view) if row.view else None)
    if not assignments:
        return output.reading
    return apply_assignments(output.reading, output.received.raw, assignments.values())


def _evidence_columns(evidence: Evidence) -> list[tuple[Any, ...]]:
    return list(evidence.readings.values_list("reader", "fact_id", "kind", "value", "detail", "lines", "missing"))


def _read_part(item: Item, evidence: Evidence) -> ReadPart:
    earlier = earlier_answer(evidence, item.reader, item.readings)
    return ReadPart(item.reader, item.title, item.view, item.readings, item.lines, earlier)
