"""Writes a session into a bundle; the same session gives the same bytes."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from django.db.models import FilteredRelation, Model, Prefetch
from django.db.models.functions import Length

from webapp.presenting.diagnosis_json import as_json
from webapp.records.diagnoses import session_diagnosis
from webapp.records.event_log import exported
from webapp.records.models import Assignment, DiagnosisSession, Evidence
from webapp.records.reading import parsers_version
from webapp.review.bundle import format as f
from webapp.review.bundle.rows import record_of
from webapp.review.decision_fields import DecisionContent
from webapp.review.models import Approval, CameRedacted, Comment, Decision, RecordVersion

M = TypeVar("M", bound=Model)
_JOINED = "joined"  # what people did with a row, joined to it, so that one query asks for both


@dataclass(frozen=True, slots=True)
class Output:
    """One output without its bytes. size_bytes: what it printed, with its errors, as far as it is kept.
    assignments: what people said of its lines."""

    evidence: Evidence
    size_bytes: int
    assignments: Sequence[Assignment]


def bundle(session: DiagnosisSession) -> bytes:
    """The whole session, as it is: one that came redacted and in which nothing was done since is the
    redacted bundle that it came as."""
    came = CameRedacted.objects.filter(session=session).first()
    events = "".join(json.dumps(e, sort_keys=True) + "\n" for e in _events(session))
    parts = {"session.json": encoded(session_record(session)), "diagnosis.json": diagnosis_json(session)}
    if came:
        parts["redaction.json"] = encoded(came.report)
    if events or not came:
        parts["events.jsonl"] = events
    files: dict[str, bytes] = {name: text.encode() for name, text in parts.items()}
    outputs = session.evidence.order_by("pk").iterator(chunk_size=1)
    for number, (evidence, raw) in enumerate(Evidence.with_raw(outputs)):
        files |= raw_parts(number, raw, bytes(evidence.stderr))
    files["manifest.json"] = encoded(_manifest(session, files)).encode()
    return zipped(files)


def raw_parts(number: int, body: bytes, stderr: bytes) -> dict[str, bytes]:
    return {f"evidence/{number:05}": body} | ({f"evidence/{number:05}.err": stderr} if stderr else {})


def _manifest(session: DiagnosisSession, files: dict[str, bytes]) -> f.Manifest:
    digest = hashlib.sha256(files["diagnosis.json"]).hexdigest()
    redacted = "events.jsonl" not in files
    return f.Manifest(f.SCHEMA, str(session.pk), redacted, digest, parsers_version())


def zipped(files: dict[str, bytes]) -> bytes:
    """Stored, without times: no compressor of another version changes the bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name])
    return buffer.getvalue()


def encoded(record: Any) -> str:
    return json.dumps(msgspec.to_builtins(record), sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def diagnosis_json(session: DiagnosisSession) -> str:
    return as_json(session_diagnosis(session)) + "\n"


def outputs_of(session: DiagnosisSession) -> list[Output]:
    """In order."""
    rows = session.evidence.defer("body", "stderr").annotate(errors_bytes=Length("stderr"))
    rows = rows.annotate(**{_JOINED: FilteredRelation("assignments")}).order_by("pk", f"{_JOINED}__pk")
    return [
        Output(e, vars(e)["errors_bytes"] + (0 if e.purged_at else e.size_bytes), assignments)
        for e, assignments in _with_joined(rows.select_related("created_by", f"{_JOINED}__created_by"))
    ]


def _with_joined(rows: Iterable[M]) -> Iterator[tuple[M, list[Any]]]:
    """Each row once, with all that was joined to it."""
    for _, same in groupby(rows, key=lambda row: row.pk):
        copies = list(same)
        yield copies[0], [joined for row in copies if (joined := vars(row).get(_JOINED))]


def session_record(session: DiagnosisSession, outputs: Sequence[Output] | None = None) -> f.Session:
    """outputs: the first ones, which are in it; all by default."""
    outputs = outputs_of(session) if outputs is None else outputs
    runs = list(session.runs.select_related("target", "created_by").order_by("number"))
    numbers = {run.pk: run.number for run in runs}
    comments = list(session.comments.select_related("author"))
    places = {comment.pk: place for place, comment in enumerate(comments)}
    return record_of(
        f.Session,
        session,
        runs=[record_of(f.Run, run, target=record_of(f.Target, run.target)) for run in runs],
        evidence=[_evidence(output, numbers) for output in outputs],
        comments=[_comment(comment, places) for comment in comments],
        decisions=_decisions(session),
    )


def _decisions(session: DiagnosisSession) -> list[f.Decision]:
    versions = Prefetch("versions", RecordVersion.objects.select_related("proposed_by"))
    rows = session.decisions.annotate(**{_JOINED: FilteredRelation("approvals")})
    rows = rows.select_related("proposed_by", "supersedes", f"{_JOINED}__by")
    rows = rows.prefetch_related(versions).order_by("number", f"{_JOINED}__pk")
    return [_decision(decision, approvals) for decision, approvals in _with_joined(rows)]


def _events(session: DiagnosisSession) -> Iterator[dict[str, Any]]:
    for row in exported(session):
        del row["session"]
        yield row


def _evidence(output: Output, numbers: Mapping[UUID, int]) -> f.Evidence:
    """numbers: of runs, by their keys."""
    row = output.evidence
    run = numbers[row.run_id] if row.run_id else None
    assignments = [record_of(f.Assignment, assignment) for assignment in output.assignments]
    return record_of(f.Evidence, row, run=run, assignments=assignments)


def _comment(comment: Comment, places: dict[int, int]) -> f.Comment:
    first = comment.reply_to_id
    return record_of(f.Comment, comment, reply_to=places[first] if first else None)


def _decision(row: Decision, approvals: Iterable[Approval]) -> f.Decision:
    versions = [
        record_of(f.RecordVersion, version, content=msgspec.convert(version.content, DecisionContent))
        for version in row.versions.all()
    ]
    return record_of(
        f.Decision,
        row,
        supersedes=row.supersedes.number if row.supersedes else None,
        approvals=[record_of(f.Approval, approval) for approval in approvals],
        versions=versions,
        proof=msgspec.convert(row.proof, f.Proof) if row.proof else None,
    )
