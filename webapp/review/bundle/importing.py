"""Opens a bundle as a session here. Everything in it is another's word: checked, capped, never run."""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import BoundedSemaphore
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from django.db import DataError, IntegrityError, transaction
from django.db.models import Model

from agents.raw_reading import RawReading
from webapp.accounts.models import Role, User
from webapp.diagnosis.workload import read_workload
from webapp.records import blob_store, parse_process, reading, recorded
from webapp.records.digests import digest_refresh
from webapp.records.models import Assignment, DiagnosisSession, Event, Evidence, Run, RunState, SessionMember, Target
from webapp.records.received import Received
from webapp.review.bundle import format as f
from webapp.review.bundle.export import diagnosis_json
from webapp.review.bundle.people import account_elsewhere
from webapp.review.decisions import CONTENT
from webapp.review.models import Approval, CameRedacted, Comment, Decision, DecisionState, RecordVersion, Word

LARGEST_BYTES, MOST_FILES = 200 * 2**20, 40_000
# Of all outputs together. What is not read by then is kept, and listed on the page Stuck.
READ_WITHIN_S = 120.0
# Two texts are read at a time (parse_process); of bundles one, so that pastes have the other.
_ONE_BUNDLE = BoundedSemaphore(1)
RECORD = "record"  # the agent of a target that is only a name here
# DataError: a text with NUL, on PostgreSQL. OverflowError: a time at the end of the calendar.
_DO_NOT_FIT = (IntegrityError, DataError, ValueError, KeyError, IndexError, OverflowError)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Opened:
    """same: this instance derives the diagnosis that the bundle was made with, byte for byte. unread: how
    many of its outputs were kept and not read, because the time was over."""

    session: DiagnosisSession
    same: bool
    unread: int = 0


def open_bundle(raw: bytes, *, user: User) -> Opened:
    """Raises BundleError; then nothing was kept."""
    files = _files(raw)
    manifest = _decoded(files, "manifest.json", f.Manifest)
    if manifest.schema != f.SCHEMA:
        raise f.BundleError(f"It is {manifest.schema!r}; this version opens {f.SCHEMA!r}.")
    record = _decoded(files, "session.json", f.Session)
    try:
        opening = Opening(files, record, manifest.session, user, to_stay=True)
        opening.read()
        with transaction.atomic():
            session = opening.session()
    except _DO_NOT_FIT as error:
        raise f.BundleError(f"Its records do not fit together: {error}") from error
    derived = hashlib.sha256(diagnosis_json(session).encode()).hexdigest()
    return Opened(session, derived == manifest.diagnosis_sha256, opening.unread)


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


def _decoded(files: dict[str, bytes], name: str, kind: type[T]) -> T:
    if name not in files:
        raise f.BundleError(f"It is no bundle: {name} is not in it.")
    try:
        return msgspec.json.decode(files[name], type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise f.BundleError(f"{name} cannot be read: {error}") from error


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


class Opening:
    """The records of one bundle, made here one kind after the other. key: the session's id; user: who
    opens it, and is its operator here; to_stay: else all of it is rolled back."""

    def __init__(self, files: dict[str, bytes], record: f.Session, key: str, user: User, *, to_stay: bool) -> None:
        self.files, self.record, self.key, self.user = files, record, key, user
        self.to_stay = to_stay
        self.people: dict[str, User] = {}
        self.outputs: dict[int, reading.Read] = {}
        self.dated: dict[tuple[str, type[Model]], list[Model]] = defaultdict(list)
        self.unread = 0

    def read(self) -> None:
        """Before the transaction: texts may take minutes, and nobody else could save meanwhile."""
        until = time.monotonic() + READ_WITHIN_S
        for number, item in enumerate(self.record.evidence):
            if not item.meta.get("purged_at"):
                output = self._received(number, item)
                with _turn(len(output.raw), until) as may:
                    self.outputs[number] = reading.read(output) if may else reading.Read(output, RawReading())
                self.unread += not may

    def _received(self, number: int, item: f.Evidence) -> Received:
        name = f"evidence/{number:05}"
        stderr = self.files.get(f"{name}.err", b"")
        return Received(item.reader, self.files[name], stderr, item.view, meta=item.meta)

    def session(self) -> DiagnosisSession:
        self.made = self._session()
        SessionMember.objects.create(session=self.made, user=self.user, role=Role.OPERATOR)
        self._runs()
        for number, item in enumerate(self.record.evidence):
            self._evidence(number, item)
        self._comments()
        for decision in self.record.decisions:
            self._decision(decision)
        self._events()
        self._report()
        for (name, model), rows in self.dated.items():
            model._default_manager.bulk_update(rows, [name], batch_size=500)
        digest_refresh(self.made)
        self.made.refresh_from_db()
        return self.made

    def person(self, name: str) -> User:
        if name not in self.people:
            self.people[name] = account_elsewhere(name)
        return self.people[name]

    def _session(self) -> DiagnosisSession:
        record, key = self.record, UUID(self.key)
        if DiagnosisSession.objects.filter(pk=key).exists():
            raise f.BundleError("This session is here already; a bundle is opened once.")
        read_workload(record.workload)
        made = DiagnosisSession.objects.create(
            pk=key,
            title=record.title[:200],
            owner=self.person(record.owner),
            symptom=record.symptom,
            workload=record.workload,
            first_hypothesis=record.first_hypothesis[:80],
            own_words=record.own_words,
            vmid=record.vmid,
            epoch=record.epoch,
            quorum=record.quorum,
            sample=record.sample[:40],
        )
        self._dated(made, "created_at", record.created_at)
        return made

    def _runs(self) -> None:
        self.runs: dict[int, Run] = {}
        targets: dict[tuple[Any, ...], Target] = {}
        for row in self.record.runs:
            by = self.person(row.created_by)
            key = (row.role, row.host, row.port, row.user)
            if key not in targets:
                targets[key] = Target.objects.create(
                    session=self.made,
                    agent=RECORD,
                    role=row.role[:10],
                    host=row.host[:255],
                    port=row.port,
                    user=row.user[:64],
                    created_by=by,
                )
            state = RunState(row.state)
            self.runs[row.number] = run = Run.objects.create(
                session=self.made,
                target=targets[key],
                number=row.number,
                kind=row.kind[:12],
                names=row.names,
                state=state if state.ended else RunState.LOST,
                epoch=row.epoch,
                problem=row.problem,
                created_by=by,
            )
            self._dated(run, "created_at", row.created_at)

    def _evidence(self, number: int, item: f.Evidence) -> None:
        name = f"evidence/{number:05}"
        body = self.files[name]
        purged_at = item.meta.pop("purged_at", None)
        set_aside_at = item.meta.pop("set_aside_at", None)
        if purged_at:
            body = b""
        elif hashlib.sha256(body).hexdigest() != item.sha256:
            raise f.BundleError(f"{name} is not what its record says: the hashes differ.")
        made = Evidence.store(
            blob_store.store(body, outside=self.to_stay),
            session=self.made,
            run=self.runs[item.run] if item.run is not None else None,
            reader=item.reader[:100],
            view=item.view[:10],
            origin=item.origin[:10],
            label=item.label[:200],
            sha256=item.sha256,
            purged_at=datetime.fromisoformat(str(purged_at)) if purged_at else None,
            set_aside_at=datetime.fromisoformat(str(set_aside_at)) if set_aside_at else None,
            stderr=self.files.get(f"{name}.err", b""),
            meta=item.meta,
            epoch=item.epoch,
            created_by=self.person(item.created_by) if item.created_by else None,
        )
        self._dated(made, "created_at", item.created_at)
        for row in item.assignments:
            said = Assignment.objects.create(
                evidence=made,
                first=row.first,
                last=row.last,
                reader=row.reader[:100],
                view=row.view[:10],
                created_by=self.person(row.created_by),
            )
            self._dated(said, "created_at", row.created_at)
        if not purged_at:
            output = self.outputs.get(number) or reading.read(self._received(number, item))
            recorded.record_first(output.stored_as(made))

    def _comments(self) -> None:
        made: list[Comment] = []
        for row in self.record.comments:
            comment = Comment.objects.create(
                session=self.made,
                anchor=row.anchor[:120],
                stance=row.stance[:10],
                reply_to=made[row.reply_to] if row.reply_to is not None else None,
                text=row.text,
                author=self.person(row.author),
            )
            self._dated(comment, "created_at", row.created_at)
            made.append(comment)

    def _decision(self, row: f.Decision) -> None:
        before = row.supersedes
        made = Decision.objects.create(
            session=self.made,
            number=row.number,
            title=row.title[:200],
            context=row.context,
            options=row.options,
            chosen=row.chosen,
            reason=row.reason,
            drivers=row.drivers,
            consequences=row.consequences,
            pins=row.pins,
            passed_over=row.passed_over,
            epoch=row.epoch,
            state=DecisionState(row.state),
            outcome=row.outcome,
            proof=msgspec.to_builtins(row.proof) if row.proof else {},
            supersedes=self.made.decisions.get(number=before) if before is not None else None,
            proposed_by=self.person(row.proposed_by),
        )
        self._dated(made, "created_at", row.created_at)
        for approval in row.approvals:
            said = Approval.objects.create(
                decision=made,
                by=self.person(approval.by) if approval.by else None,
                label=approval.label[:120],
                word=Word(approval.word or (Word.APPROVED if approval.approves else Word.REJECTED)),
                disputes=approval.disputes,
                reason=approval.reason,
                content_sha256=approval.content_sha256[:64],
            )
            self._dated(said, "at", approval.at)
        for version in row.versions:
            kept = RecordVersion.objects.create(
                decision=made,
                number=version.number,
                content={n: version.content[n] for n in CONTENT if n in version.content},
                content_sha256=version.content_sha256[:64],
                proposed_by=self.person(version.proposed_by),
            )
            self._dated(kept, "at", version.at)

    def _events(self) -> None:
        """As they were, hash by hash; the log's check tells whether they were altered on the way."""
        lines = self.files.get("events.jsonl", b"").splitlines()
        decoder = msgspec.json.Decoder(f.Event)
        try:
            rows = [decoder.decode(line) for line in lines]
        except msgspec.DecodeError as error:
            raise f.BundleError(f"events.jsonl cannot be read: {error}") from error
        Event.objects.bulk_create(
            Event(
                session=self.made,
                number=row.number,
                kind=row.kind[:60],
                actor_name=row.actor[:150],
                data=row.data,
                at=datetime.fromisoformat(row.at),
                hash=row.hash[:64],
            )
            for row in rows
        )

    def _report(self) -> None:
        """What was hidden before it came here is told again when it leaves."""
        if "redaction.json" not in self.files:
            return
        report = _decoded(self.files, "redaction.json", list[f.Hidden])
        if any((entry.evidence or 0) >= max(len(self.record.evidence), 1) for entry in report):
            raise f.BundleError("redaction.json tells of outputs that are not in it.")
        CameRedacted.objects.create(session=self.made, report=msgspec.to_builtins(report))

    def _dated(self, row: Model, name: str, time: str) -> None:
        """auto_now_add said that it happened now: what it was is written at the end, for all at once."""
        setattr(row, name, datetime.fromisoformat(time))
        self.dated[name, type(row)].append(row)
