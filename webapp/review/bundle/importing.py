"""Opens a bundle as a session here. Everything in it is another's word: checked, capped, never run."""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from django.db import DataError, IntegrityError, transaction
from django.db.models import Model

from agents.raw_reading import RawReading
from webapp.accounts.models import Role, User
from webapp.diagnosis.workload import read_workload
from webapp.records import blob_store, parse_process, reading, recorded
from webapp.records.models import Assignment, DiagnosisSession, Event, Evidence, Run, RunState, SessionMember, Target
from webapp.records.received import Received
from webapp.review.bundle import format as f
from webapp.review.bundle.export import diagnosis_json
from webapp.review.bundle.rows import Person, account_elsewhere, columns_of, decoded, decoded_text
from webapp.review.digests import digest_refresh
from webapp.review.models import Approval, CameRedacted, Comment, Decision, RecordVersion

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LARGEST_BYTES, MOST_FILES = 200 * 2**20, 40_000
# Of all outputs together. What is not read by then is kept, and listed on the page Stuck.
READ_WITHIN_S = 120.0
# Two texts are read at a time (read_apart); of bundles one, so that pastes have the other.
_ONE_BUNDLE = BoundedSemaphore(1)
RECORD = "record"  # the agent of a target that is only a name here
# DataError: a text with NUL, on PostgreSQL. OverflowError: a time at the end of the calendar.
_DO_NOT_FIT = (IntegrityError, DataError, ValueError, KeyError, IndexError, OverflowError)


@dataclass(frozen=True, slots=True)
class Opened:
    """same: this instance derives the diagnosis that the bundle was made with, byte for byte. unread: how
    many of its outputs were kept and not read, because the time was over."""

    session: DiagnosisSession
    same: bool
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Contents:
    """key: the session's id here. user: who opens it, and is its operator. to_stay: else all of it is rolled back.
    person: the account of a name, asked for once."""

    files: dict[str, bytes]
    record: f.Session
    key: UUID
    user: User
    to_stay: bool
    person: Person = field(default_factory=lambda: cache(account_elsewhere))

    def columns(self, model: type[Model], record: DataclassInstance) -> dict[str, Any]:
        return columns_of(model, record, self.person)


def open_bundle(raw: bytes, *, user: User) -> Opened:
    """Raises BundleError; then nothing was kept."""
    files = _files(raw)
    manifest = decoded(files, "manifest.json", f.Manifest)
    if manifest.schema != f.SCHEMA:
        raise f.BundleError(f"It is {manifest.schema!r}; this version opens {f.SCHEMA!r}.")
    record = decoded(files, "session.json", f.Session)
    try:
        contents = Contents(files, record, UUID(manifest.session), user, to_stay=True)
        outputs, unread = _read_outputs(contents)
        with transaction.atomic():
            session = store_session(contents, outputs)
    except _DO_NOT_FIT as error:
        raise f.BundleError(f"Its records do not fit together: {error}") from error
    derived = hashlib.sha256(diagnosis_json(session).encode()).hexdigest()
    return Opened(session, derived == manifest.diagnosis_sha256, unread)


def _files(raw: bytes) -> dict[str, bytes]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
    except zipfile.BadZipFile as error:
        raise f.BundleError("It is no zip archive; a bundle is what “Take away” gives.") from error
    entries = archive.infolist()
    stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
    if not stored or len(entries) > MOST_FILES or sum(e.file_size for e in entries) > LARGEST_BYTES:
        raise f.BundleError("It is no bundle: compressed inside, or larger than one may be.")
    try:
        return {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise f.BundleError(f"It is damaged: {error}") from error


@contextmanager
def _turn(size_bytes: int, until: float) -> Iterator[bool]:
    """Whether an output may be read now: False when the time is over, or was before its turn came."""
    left = until - time.monotonic()
    if left <= 0 or size_bytes <= parse_process.LARGE_BYTES:
        yield left > 0
        return
    mine = _ONE_BUNDLE.acquire(timeout=left)
    try:
        yield mine
    finally:
        if mine:
            _ONE_BUNDLE.release()


def _read_outputs(contents: Contents) -> tuple[dict[int, reading.Read], int]:
    """By the numbers of the outputs, and how many the time did not reach: their readings are empty. Before the
    transaction: texts may take minutes, and nobody else could save meanwhile."""
    until = time.monotonic() + READ_WITHIN_S
    outputs: dict[int, reading.Read] = {}
    unread = 0
    for number, item in enumerate(contents.record.evidence):
        if not item.purged_at:
            output = _received(contents, number)
            with _turn(len(output.raw), until) as mine:
                outputs[number] = reading.read(output) if mine else reading.Read(output, RawReading())
                unread += not mine
    return outputs, unread


def _received(contents: Contents, number: int) -> Received:
    item, name = contents.record.evidence[number], f"evidence/{number:05}"
    return Received(
        item.reader, contents.files[name], contents.files.get(f"{name}.err", b""), item.view, meta=item.meta
    )


def store_session(contents: Contents, outputs: Mapping[int, reading.Read]) -> DiagnosisSession:
    """All rows of it, one kind after the other. outputs: those that were read before. Raises
    BundleError and `_DO_NOT_FIT`."""
    record = contents.record
    if DiagnosisSession.objects.filter(pk=contents.key).exists():
        raise f.BundleError("This session is here already; a bundle is opened once.")
    read_workload(record.workload)
    session = DiagnosisSession.objects.create(pk=contents.key, **contents.columns(DiagnosisSession, record))
    SessionMember.objects.create(session=session, user=contents.user, role=Role.OPERATOR)
    runs = _store_runs(contents, session)
    for number, item in enumerate(record.evidence):
        evidence = _store_output(contents, session, number, runs[item.run] if item.run is not None else None)
        if not item.purged_at:
            output = outputs.get(number) or reading.read(_received(contents, number))
            recorded.record_first(output.stored_as(evidence))
    _store_comments(contents, session)
    for decision in record.decisions:
        _store_decision(contents, session, decision)
    _store_events(contents.files, session)
    _store_report(contents, session)
    digest_refresh(session)
    session.refresh_from_db()
    return session


def _store_runs(contents: Contents, session: DiagnosisSession) -> dict[int, Run]:
    """By their numbers. What had not ended there ends here as lost."""
    runs: dict[int, Run] = {}
    targets: dict[f.Target, Target] = {}
    for row in contents.record.runs:
        columns = contents.columns(Run, row)
        if row.target not in targets:
            target = contents.columns(Target, row.target) | {"created_by": columns["created_by"]}
            targets[row.target] = Target.objects.create(session=session, agent=RECORD, **target)
        if not RunState(row.state).ended:
            columns["state"] = RunState.LOST
        runs[row.number] = Run.objects.create(session=session, target=targets[row.target], **columns)
    return runs


def _store_output(contents: Contents, session: DiagnosisSession, number: int, run: Run | None) -> Evidence:
    item = contents.record.evidence[number]
    output = _received(contents, number)
    if not item.purged_at and hashlib.sha256(output.raw).hexdigest() != item.sha256:
        raise f.BundleError(f"evidence/{number:05} is not what its record says: the hashes differ.")
    block = blob_store.store(b"" if item.purged_at else output.raw, outside=contents.to_stay)
    evidence = Evidence.store(block, session=session, run=run, stderr=output.stderr, **contents.columns(Evidence, item))
    for row in item.assignments:
        Assignment.objects.create(evidence=evidence, **contents.columns(Assignment, row))
    return evidence


def _store_comments(contents: Contents, session: DiagnosisSession) -> None:
    comments: list[Comment] = []
    for row in contents.record.comments:
        first = comments[row.reply_to] if row.reply_to is not None else None
        columns = contents.columns(Comment, row)
        comments.append(Comment.objects.create(session=session, reply_to=first, **columns))


def _store_decision(contents: Contents, session: DiagnosisSession, row: f.Decision) -> None:
    before = session.decisions.get(number=row.supersedes) if row.supersedes is not None else None
    columns = contents.columns(Decision, row) | {"proof": msgspec.to_builtins(row.proof) or {}}
    decision = Decision.objects.create(session=session, supersedes=before, **columns)
    for approval in row.approvals:
        Approval.objects.create(decision=decision, **contents.columns(Approval, approval))
    for version in row.versions:
        RecordVersion.objects.create(decision=decision, **contents.columns(RecordVersion, version))


def _store_events(files: dict[str, bytes], session: DiagnosisSession) -> None:
    """As they were, hash by hash; the log's check tells whether they were altered on the way."""
    lines = files.get("events.jsonl", b"").splitlines()
    rows = [decoded_text(line, "events.jsonl", f.Event) for line in lines]
    Event.objects.bulk_create(
        Event(session=session, actor_name=row.actor[:150], **columns_of(Event, row, account_elsewhere)) for row in rows
    )


def _store_report(contents: Contents, session: DiagnosisSession) -> None:
    """What was hidden before it came here is told again when it leaves."""
    if "redaction.json" not in contents.files:
        return
    report = decoded(contents.files, "redaction.json", list[f.Hidden])
    if any((entry.evidence or 0) >= max(len(contents.record.evidence), 1) for entry in report):
        raise f.BundleError("redaction.json tells of outputs that are not in it.")
    CameRedacted.objects.create(session=session, report=msgspec.to_builtins(report))
