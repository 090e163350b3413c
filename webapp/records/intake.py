"""The one way in for raw output: store it with its hash, then parse it, then record what was read.

Used by pastes and uploads, by `--save`, and by the runner. What a parser cannot read today is still
there for a better one: `rereading`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from django.db import transaction

import agents
from agents.assignment import LineAssignment, apply_assignments, doubts
from agents.facts import Reading, View
from agents.framing import Frame, clean, looks_like_bundle
from agents.probe import Output
from agents.probes import all_probes, handed_for
from agents.raw_reading import Item, LineRange, RawReading, read_output, title_of
from webapp.accounts.models import User
from webapp.records import blob_store, parse_process, reading_codec
from webapp.records.models import DiagnosisSession, Event, Evidence, Run, StoredReading
from webapp.records.reading_versions import Earlier, earlier_answer

PASTE, BUNDLE = "paste", "bundle"


@dataclass(frozen=True, slots=True)
class Understood:
    """One output found in what was given. lines: its first and last line, for a paste. earlier: a
    different answer to the same question that was given before."""

    reader: str
    title: str
    readings: tuple[Reading[Any], ...]
    lines: LineRange | None = None
    earlier: Earlier | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a paste or upload.

    duplicate: the same bytes were given before since the last change; `evidence` is that one, and
    nothing was stored again. unplaced: line ranges nobody could place. missing: ids of the view's
    probes that the session has no answer to yet. notes: sentences for the person who gave it.
    """

    evidence: Evidence
    duplicate: bool
    understood: tuple[Understood, ...]
    unplaced: tuple[LineRange, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()


def take_text(
    session: DiagnosisSession,
    raw: bytes,
    *,
    user: User | None,
    view: View | None = None,
    label: str = "",
    origin: str = "paste",
    hint: str = "",
) -> Taken:
    """Takes one paste or upload: raw terminal text, a file, or a collector's framed output.

    view: whose output it is, when the person said so. hint: a file name or reader id. user None:
    the host admin, who answers by a link without an account.
    """
    evidence = _store_text(session, raw, user, view, label, origin, hint)
    found = parse_process.read(raw, role=view, hint=hint)
    recorded = _record_once(evidence, found, user)
    found = _as_assigned(evidence, found)
    return Taken(
        evidence,
        not recorded,
        tuple(_understood(item, evidence) for item in found.items),
        found.unrecognised,
        missing_probes(session, view or _common_view(found.items)),
        found.notes,
    )


def take_frames(run: Run, frames: Sequence[Frame]) -> None:
    """Stores and reads probes' answers as soon as they came; the same answer again is ignored, unless a
    database that went away had kept the bytes alone."""
    first: dict[str, Frame] = {}
    for frame in frames:
        first.setdefault(frame.probe_id, frame)
    given = [
        (frame, blob_store.kept(frame.raw_stdout), read_output(frame.probe_id, frame.output))
        for frame in first.values()
    ]
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        known = {evidence.reader: evidence for evidence in run.evidence.defer("body", "stderr")}
        read = set(run.evidence.filter(readings__isnull=False).values_list("reader", flat=True))
        new = [(frame, kept) for frame, kept, _ in given if frame.probe_id not in known]
        rows = [(kept, _frame_row(run.session, frame, origin="run", epoch=run.epoch, run=run)) for frame, kept in new]
        known |= {evidence.reader: evidence for evidence in Evidence.store_all(rows)}
        _create_rows(
            (known[frame.probe_id], frame.probe_id, readings)
            for frame, _, readings in given
            if frame.probe_id not in read
        )


def take_benchmark_output(run: Run, raw: bytes) -> Evidence:
    """Stores and reads what a benchmark printed, whole or as far as it came."""
    reader, kept = run.names[0], blob_store.kept(raw)
    evidence = _store(session=run.session, run=run, reader=reader, view=View.GUEST, origin="run", kept=kept)
    _store_readings(evidence, read_output(reader, _output_of(evidence)))
    return evidence


def reread_one(evidence: Evidence) -> bool:
    """Applies today's parsers, and what people said of its lines, to a stored evidence. Whether it now
    reads differently. A bundle's frames are evidence of their own; what was purged stays as it was read.
    Raises bodies.LostError.
    """
    if evidence.purged_at:
        return False
    found = _read_stored(evidence)
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=evidence.session_id)
        before = _columns(evidence)
        evidence.readings.all().delete()
        _record_parts(evidence, found)
        return _columns(evidence) != before


def read_first(evidence: Evidence, found: RawReading | None = None) -> None:
    """The same of one that this transaction stored in a session that is nobody else's yet: there is nothing
    to lock, to take away or to compare. found: what `read_again` gave for it before the transaction."""
    if not evidence.purged_at:
        _record_parts(evidence, _read_stored(evidence) if found is None else found)


def _read_stored(evidence: Evidence) -> RawReading:
    about = (evidence.reader, evidence.view, evidence.meta)
    return read_again(*about, evidence.raw, bytes(evidence.stderr))


def read_again(reader: str, view: str, meta: Mapping[str, Any], raw: bytes, stderr: bytes) -> RawReading:
    """What today's parsers read in an evidence with these columns. It may take a minute. Raises ValueError
    for a view that there is not."""
    if reader in (PASTE, BUNDLE):
        return parse_process.read(raw, role=View(view) if view else None, hint=meta.get("hint", ""))
    readings = read_output(reader, _output(raw, stderr, meta))
    return RawReading((Item(reader, title_of(reader), View.GUEST, readings),))


def missing_probes(session: DiagnosisSession, view: View | None) -> tuple[str, ...]:
    """Ids of the probes of this view that the session has no answer to, in order."""
    if view not in (View.GUEST, View.HOST):
        return ()
    answered = set(
        StoredReading.objects.of_the_case()
        .filter(evidence__session=session)
        .order_by()
        .values_list("reader", flat=True)
        .distinct()
    )
    return tuple(probe.id for probe in handed_for(view) if probe.id not in answered)


@cache
def parsers_version() -> str:
    """Twelve hex digits over the source of everything that reads, so a reading names its parser."""
    root = Path(agents.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _store_text(
    session: DiagnosisSession, raw: bytes, user: User | None, view: View | None, label: str, origin: str, hint: str
) -> Evidence:
    """The evidence of these bytes since the last change; two that paste them at once store one."""
    reader, kept = BUNDLE if looks_like_bundle(raw) else PASTE, blob_store.kept(raw)
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        known = Evidence.objects.filter(
            session=session,
            sha256=kept.columns["sha256"],
            view=view or "",
            epoch=session.epoch,
            run=None,
            purged_at=None,
            set_aside_at=None,
        ).first()
        return known or _store(
            session=session,
            reader=reader,
            view=view,
            origin=origin,
            kept=kept,
            label=label[:200],
            user=user,
            meta={"hint": hint} if hint else {},
        )


def _store(*, kept: blob_store.Kept, **about: Any) -> Evidence:
    return Evidence.store(kept, **_row(**about))


def _row(
    *,
    session: DiagnosisSession,
    reader: str,
    view: View | None,
    origin: str,
    stderr: bytes = b"",
    run: Run | None = None,
    label: str = "",
    user: User | None = None,
    epoch: int | None = None,
    meta: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The columns that say what an evidence is, beside those of its bytes."""
    return {
        "session": session,
        "run": run,
        "reader": reader,
        "view": view or "",
        "origin": origin,
        "label": label,
        "stderr": stderr,
        "meta": meta or {},
        "epoch": epoch if epoch is not None else (run or session).epoch,
        "created_by": user or (run.created_by if run else None),
    }


def _frame_row(
    session: DiagnosisSession,
    frame: Frame,
    *,
    origin: str,
    epoch: int,
    run: Run | None = None,
    bundle: Evidence | None = None,
) -> dict[str, Any]:
    output = frame.output
    meta = {
        "exit_code": output.exit_code,
        "alternative": output.alternative,
        "truncated": output.truncated,
        "timed_out": output.timed_out,
        "duration_ms": frame.duration_ms,
    }
    probe = all_probes().get(frame.probe_id)
    return _row(
        session=session,
        run=run,
        reader=frame.probe_id[:100],
        view=probe.role if probe else None,
        origin=origin,
        stderr=frame.raw_stderr,
        label=bundle.label if bundle else "",
        user=bundle.created_by if bundle else None,
        epoch=epoch,
        meta=meta | ({"bundle": bundle.sha256} if bundle else {}),
    )


def _record_once(evidence: Evidence, found: RawReading, user: User | None) -> bool:
    """Keeps what was read from a text, unless that was done before (the same bytes again, or a form
    sent twice). A text whose reading a crash prevented is read when it is given again."""
    about = {"evidence": evidence.pk, "name": evidence.name, "label": evidence.label}
    readers = [item.reader for item in found.items]
    kept = [blob_store.kept(item.frame.raw_stdout) for item in found.items if item.frame]
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=evidence.session_id)
        if _was_read(evidence):
            return False
        _record_frames(evidence, found, kept)
        _record_parts(evidence, found)
        origin = evidence.origin
        Event.record(evidence.session, "evidence_taken", user, **about, origin=origin, readers=readers)
    return True


def _was_read(evidence: Evidence) -> bool:
    evidence.refresh_from_db(fields=["unplaced", "doubts"])
    frames = Evidence.objects.filter(
        session=evidence.session_id, epoch=evidence.epoch, meta__bundle=evidence.sha256, set_aside_at=None
    )
    return bool(evidence.unplaced) or evidence.readings.exists() or frames.exists()


def _record_frames(bundle: Evidence, found: RawReading, kept: Sequence[blob_store.Kept]) -> None:
    """A bundle's frames are evidence of their own, cited by their own hash and lines."""
    framed = [(item, item.frame) for item in found.items if item.frame]
    session, origin, epoch = bundle.session, bundle.origin, bundle.epoch
    rows = [_frame_row(session, frame, origin=origin, epoch=epoch, bundle=bundle) for _, frame in framed]
    stored = Evidence.store_all(list(zip(kept, rows, strict=True)))
    _create_rows((evidence, item.reader, item.readings) for evidence, (item, _) in zip(stored, framed, strict=True))


def _record_parts(evidence: Evidence, found: RawReading) -> None:
    found = _as_assigned(evidence, found)
    evidence.unplaced = [list(span) for span in found.unrecognised]
    evidence.doubts = [[*d.lines, d.view.value, list(d.readers)] for d in doubts(found)]
    evidence.save(update_fields=["unplaced", "doubts"])
    _create_rows((evidence, item.reader, item.readings) for item in found.items if not item.frame)


def _as_assigned(evidence: Evidence, found: RawReading) -> RawReading:
    said: dict[LineRange, LineAssignment] = {}
    for row in evidence.assignments.all():
        lines = (row.first, row.last)
        said.pop(lines, None)
        if row.reader or row.view:
            said[lines] = LineAssignment(lines, row.reader, View(row.view) if row.view else None)
    return apply_assignments(found, evidence.raw, said.values()) if said else found


def _columns(evidence: Evidence) -> list[tuple[Any, ...]]:
    return list(evidence.readings.values_list("reader", "fact_id", "kind", "value", "detail", "lines", "missing"))


def _store_readings(evidence: Evidence, readings: Sequence[Reading[Any]]) -> None:
    with transaction.atomic():
        _create_rows([(evidence, evidence.reader, readings)])


def _create_rows(read: Iterable[tuple[Evidence, str, Iterable[Reading[Any]]]]) -> None:
    """read: evidence, by which reader, and what it said."""
    StoredReading.objects.bulk_create(
        StoredReading(evidence=evidence, reader=reader, parsed_by=parsers_version(), **asdict(reading_codec.encode(r)))
        for evidence, reader, readings in read
        for r in readings
    )


def _output_of(evidence: Evidence) -> Output:
    """What the parser was given, from what was stored."""
    return _output(evidence.raw, bytes(evidence.stderr), evidence.meta)


def _output(raw: bytes, stderr: bytes, meta: Mapping[str, Any]) -> Output:
    names = ("exit_code", "alternative", "truncated", "timed_out")
    known = {name: meta[name] for name in names if name in meta}
    return replace(Output(clean(raw), clean(stderr)), **known)


def _understood(item: Item, evidence: Evidence) -> Understood:
    earlier = earlier_answer(evidence, item.reader, item.readings)
    return Understood(item.reader, item.title, item.readings, item.lines, earlier)


def _common_view(items: Sequence[Item]) -> View | None:
    views = {item.view for item in items}
    return views.pop() if len(views) == 1 else None
