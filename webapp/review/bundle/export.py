"""Writes a session into a bundle; the same session gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from django.db.models import FilteredRelation, Model, Prefetch
from django.db.models.functions import Length

from webapp.presenting.diagnosis_json import as_json
from webapp.records.diagnoses import session_diagnosis
from webapp.records.event_log import exported
from webapp.records.models import Assignment, DiagnosisSession, Evidence, Run
from webapp.records.reading import parsers_version
from webapp.review.bundle import format as f
from webapp.review.bundle.people import name_of
from webapp.review.models import Approval, CameRedacted, Comment, Decision, RecordVersion

M = TypeVar("M", bound=Model)
_SAID = "said"  # by people, of a row: joined to it, so that one query asks for both


@dataclass(frozen=True, slots=True)
class Output:
    """One output without its bytes. size_bytes: what it printed, with its errors, as far as it is kept.
    said: what people said of its lines."""

    evidence: Evidence
    size_bytes: int
    said: Sequence[Assignment]


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
    plain = json.loads(msgspec.json.encode(record))
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def diagnosis_json(session: DiagnosisSession) -> str:
    return as_json(session_diagnosis(session)) + "\n"


def outputs_of(session: DiagnosisSession) -> list[Output]:
    """In order."""
    rows = session.evidence.defer("body", "stderr").annotate(errors_bytes=Length("stderr"))
    rows = rows.annotate(**{_SAID: FilteredRelation("assignments")}).order_by("pk", f"{_SAID}__pk")
    return [
        Output(e, vars(e)["errors_bytes"] + (0 if e.purged_at else e.size_bytes), said)
        for e, said in _with_said(rows.select_related("created_by", f"{_SAID}__created_by"))
    ]


def _with_said(rows: Iterable[M]) -> Iterator[tuple[M, list[Any]]]:
    """Each row once, with all that was joined to it."""
    for _, same in groupby(rows, key=lambda row: row.pk):
        found = list(same)
        yield found[0], [said for row in found if (said := vars(row).get(_SAID))]


def session_record(session: DiagnosisSession, outputs: Sequence[Output] | None = None) -> f.Session:
    """outputs: the first ones, which are in it; all by default."""
    outputs = outputs_of(session) if outputs is None else outputs
    runs = list(session.runs.select_related("target", "created_by").order_by("number"))
    numbers = {run.pk: run.number for run in runs}
    comments = list(session.comments.select_related("author"))
    places = {comment.pk: place for place, comment in enumerate(comments)}
    return f.Session(
        title=session.title,
        owner=name_of(session.owner),
        symptom=session.symptom,
        workload=session.workload,
        first_hypothesis=session.first_hypothesis,
        own_words=session.own_words,
        vmid=session.vmid,
        epoch=session.epoch,
        quorum=session.quorum,
        sample=session.sample,
        created_at=_time(session.created_at),
        runs=[_run(run) for run in runs],
        evidence=[_evidence(output, numbers) for output in outputs],
        comments=[_comment(comment, places) for comment in comments],
        decisions=_decisions(session),
    )


def _decisions(session: DiagnosisSession) -> list[f.Decision]:
    versions = Prefetch("versions", RecordVersion.objects.select_related("proposed_by"))
    rows = session.decisions.annotate(**{_SAID: FilteredRelation("approvals")})
    rows = rows.select_related("proposed_by", "supersedes", f"{_SAID}__by")
    rows = rows.prefetch_related(versions).order_by("number", f"{_SAID}__pk")
    return [_decision(decision, said) for decision, said in _with_said(rows)]


def _events(session: DiagnosisSession) -> Iterator[dict[str, Any]]:
    for row in exported(session):
        del row["session"]
        yield row


def _run(run: Run) -> f.Run:
    target = run.target
    return f.Run(
        number=run.number,
        kind=run.kind,
        names=run.names,
        state=run.state,
        epoch=run.epoch,
        problem=run.problem,
        role=target.role,
        host=target.host,
        port=target.port,
        user=target.user,
        created_by=name_of(run.created_by),
        created_at=_time(run.created_at),
    )


def _since(item: Evidence) -> dict[str, str]:
    """What became of it after it was stored, as far as anything did."""
    times = {"purged_at": item.purged_at, "set_aside_at": item.set_aside_at}
    return {name: _time(at) for name, at in times.items() if at}


def _evidence(output: Output, numbers: Mapping[UUID, int]) -> f.Evidence:
    """numbers: of runs, by their keys."""
    item = output.evidence
    return f.Evidence(
        run=numbers[item.run_id] if item.run_id else None,
        reader=item.reader,
        view=item.view,
        origin=item.origin,
        label=item.label,
        sha256=item.sha256,
        meta=item.meta | _since(item),
        epoch=item.epoch,
        created_by=name_of(item.created_by),
        created_at=_time(item.created_at),
        assignments=[_assignment(row) for row in output.said],
    )


def _assignment(row: Assignment) -> f.Assignment:
    return f.Assignment(row.first, row.last, row.reader, row.view, name_of(row.created_by), _time(row.created_at))


def _comment(comment: Comment, places: dict[int, int]) -> f.Comment:
    return f.Comment(
        anchor=comment.anchor,
        stance=comment.stance,
        reply_to=places[comment.reply_to_id] if comment.reply_to_id else None,
        text=comment.text,
        author=name_of(comment.author),
        created_at=_time(comment.created_at),
    )


def _decision(item: Decision, said: Iterable[Approval]) -> f.Decision:
    approvals = [
        f.Approval(
            by=name_of(row.by),
            label=row.label,
            approves=row.approves,
            reason=row.reason,
            content_sha256=row.content_sha256,
            at=_time(row.at),
            word=row.word,
            disputes=row.disputes,
        )
        for row in said
    ]
    versions = [
        f.RecordVersion(row.number, row.content, row.content_sha256, name_of(row.proposed_by), _time(row.at))
        for row in item.versions.all()
    ]
    return f.Decision(
        number=item.number,
        title=item.title,
        context=item.context,
        options=item.options,
        chosen=item.chosen,
        reason=item.reason,
        drivers=item.drivers,
        consequences=item.consequences,
        pins=item.pins,
        epoch=item.epoch,
        state=item.state,
        outcome=item.outcome,
        supersedes=item.supersedes.number if item.supersedes else None,
        proposed_by=name_of(item.proposed_by),
        created_at=_time(item.created_at),
        approvals=approvals,
        versions=versions,
        passed_over=item.passed_over,
        proof=msgspec.convert(item.proof, f.Proof) if item.proof else None,
    )


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
