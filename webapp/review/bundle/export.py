"""Writes a session into a bundle; the same session gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db.models import Prefetch

from webapp.review.bundle import format as f
from webapp.review.bundle.people import name_of
from webapp.review.models import Approval, CameRedacted, Comment, Decision, RecordVersion
from webapp.triage.audit import exported
from webapp.triage.diagnoses import session_diagnosis
from webapp.triage.diagnosis_json import as_json
from webapp.triage.intake import parsers_version
from webapp.triage.models import Assignment, DiagnosisSession, Evidence, Run


def bundle(session: DiagnosisSession) -> bytes:
    """The whole session, as it is: one that came redacted and in which nothing was done since is the
    redacted bundle that it came as."""
    came = CameRedacted.objects.filter(session=session).first()
    events = "".join(json.dumps(e, sort_keys=True) + "\n" for e in _events(session))
    parts = {
        "session.json": encoded(session_record(session)),
        "diagnosis.json": diagnosis_json(session),
    }
    if came:
        parts["redaction.json"] = encoded(came.report)
    if events or not came:
        parts["events.jsonl"] = events
    files: dict[str, bytes] = {name: text.encode() for name, text in parts.items()}
    for number, evidence in enumerate(session.evidence.order_by("pk").iterator(chunk_size=1)):
        files |= raw_parts(number, evidence.raw, bytes(evidence.stderr))
    files["manifest.json"] = encoded(_manifest(session, files)).encode()
    return zipped(files)


def raw_parts(number: int, body: bytes, stderr: bytes) -> dict[str, bytes]:
    return {f"evidence/{number:05}": body} | (
        {f"evidence/{number:05}.err": stderr} if stderr else {}
    )


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


def session_record(session: DiagnosisSession, until: int | None = None) -> f.Session:
    """until: the key of the last evidence in it; all by default."""
    evidence = session.evidence.order_by("pk").defer("body", "stderr")
    evidence = evidence.filter(pk__lte=until) if until is not None else evidence
    said = Prefetch("assignments", Assignment.objects.select_related("created_by"))
    comments = list(session.comments.select_related("author"))
    places = {comment.pk: place for place, comment in enumerate(comments)}
    decisions = session.decisions.select_related("proposed_by", "supersedes").prefetch_related(
        Prefetch("approvals", Approval.objects.select_related("by")),
        Prefetch("versions", RecordVersion.objects.select_related("proposed_by")),
    )
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
        runs=[
            _run(run)
            for run in session.runs.select_related("target", "created_by").order_by("number")
        ],
        evidence=[
            _evidence(item)
            for item in evidence.select_related("run", "created_by").prefetch_related(said)
        ],
        comments=[_comment(comment, places) for comment in comments],
        decisions=[_decision(decision) for decision in decisions],
    )


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


def _evidence(item: Evidence) -> f.Evidence:
    return f.Evidence(
        run=item.run.number if item.run else None,
        reader=item.reader,
        view=item.view,
        origin=item.origin,
        label=item.label,
        sha256=item.sha256,
        meta=item.meta | _since(item),
        epoch=item.epoch,
        created_by=name_of(item.created_by),
        created_at=_time(item.created_at),
        assignments=[_assignment(row) for row in item.assignments.all()],
    )


def _assignment(row: Assignment) -> f.Assignment:
    return f.Assignment(
        row.first, row.last, row.reader, row.view, name_of(row.created_by), _time(row.created_at)
    )


def _comment(comment: Comment, places: dict[int, int]) -> f.Comment:
    return f.Comment(
        anchor=comment.anchor,
        stance=comment.stance,
        reply_to=places[comment.reply_to_id] if comment.reply_to_id else None,
        text=comment.text,
        author=name_of(comment.author),
        created_at=_time(comment.created_at),
    )


def _decision(item: Decision) -> f.Decision:
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
        for row in item.approvals.all()
    ]
    versions = [
        f.RecordVersion(
            row.number, row.content, row.content_sha256, name_of(row.proposed_by), _time(row.at)
        )
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
