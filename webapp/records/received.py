"""Stage 1 of intake: bytes come in, are labelled and redacted if asked for, and are stored under their hash.

Nothing is parsed here. `reading` takes what this stage returns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from agents import sosreport
from agents.archives import ArchiveError, Member, hint_of, is_archive, unpack
from agents.facts import View
from agents.framing import Frame, looks_like_bundle
from agents.probes import all_probes
from webapp.accounts.models import User
from webapp.records import blob_store
from webapp.records.models import DiagnosisSession, Evidence, Run
from webapp.records.redaction import RedactionError
from webapp.records.redaction_on_intake import hide_members

PASTE, BUNDLE = "paste", "bundle"
# As large as a paste may be; the settings' limit is for forms alone.
LARGEST_UPLOAD_BYTES = 50 * 2**20
_LISTED_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class Upload:
    """name: the file's; "" for a text that was typed or pasted."""

    name: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Received:
    """One raw output and what is known of it.

    reader: the probe or benchmark that it answers; PASTE or BUNDLE for a text that may hold several. view, origin,
    label, meta: as in Evidence. packed: it came in an archive. redacted: secrets were replaced here. evidence: the
    row that stores it; None before it is stored.
    """

    reader: str
    raw: bytes
    stderr: bytes = b""
    view: str = ""
    origin: str = "run"
    label: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    packed: bool = False
    redacted: bool = False
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Unpacked:
    """texts: one upload's parts, not stored yet. notes: sentences about redaction and about what was left out."""

    texts: tuple[Received, ...] = ()
    notes: tuple[str, ...] = ()


def text_output(
    raw: bytes, *, view: View | None = None, origin: str = "paste", label: str = "", hint: str = ""
) -> Received:
    """A paste or file. view: its machine, when the person named it. hint: a file name or reader id."""
    reader, meta = BUNDLE if looks_like_bundle(raw) else PASTE, {"hint": hint} if hint else {}
    return Received(reader, raw, view=view or "", origin=origin, label=label, meta=meta)


def frame_output(frame: Frame) -> Received:
    """One probe's answer, from a run or from a collector's output."""
    probe, output = all_probes().get(frame.probe_id), frame.output
    meta = {
        "exit_code": output.exit_code,
        "alternative": output.alternative,
        "truncated": output.truncated,
        "timed_out": output.timed_out,
        "duration_ms": frame.duration_ms,
    }
    view = probe.role if probe else ""
    return Received(frame.probe_id[:100], frame.raw_stdout, frame.raw_stderr, view=view, meta=meta)


def stored_output(evidence: Evidence) -> Received:
    """Evidence that came before. Raises LostError."""
    raw, stderr = evidence.raw, bytes(evidence.stderr)
    return Received(evidence.reader, raw, stderr, evidence.view, meta=evidence.meta, evidence=evidence)


def unpack_upload(
    session: DiagnosisSession, upload: Upload, *, view: View | None, label: str, redact: bool
) -> Unpacked:
    """The parts of a text, file or archive. label: for a text without a name. redact: names, addresses and serials
    are replaced."""
    try:
        members: Sequence[Member] = unpack(upload.raw, upload.name)
    except ArchiveError as error:
        return Unpacked(notes=(f"{upload.name or 'The archive'} was refused: {error}",))
    notes = _member_problems(members)
    members = [member for member in members if member.data.strip()]
    if redact:
        try:
            members, hiding = hide_members(session, members)
        except RedactionError as error:
            return Unpacked(notes=(*notes, f"{upload.name or 'The text'} was not stored: {error}"))
        notes.append(hiding.report())
    packed = is_archive(upload.raw)
    texts = (
        text_output(
            member.data, view=view, origin="upload" if member.path else "paste", label=member.path or label, hint=hint
        )
        for member, hint in with_hints(members)
    )
    return Unpacked(tuple(replace(text, packed=packed, redacted=redact) for text in texts), tuple(notes))


def with_hints(members: Sequence[Member]) -> Iterator[tuple[Member, str]]:
    """Each file with the hint that its path gives; in a sosreport also the word for the report's machine."""
    owners = sosreport.owners((member.path, member.data) for member in members)
    for member in members:
        yield member, sosreport.hint_with_owner(member.path, hint_of(member.path), owners)


def _member_problems(members: Iterable[Member]) -> list[str]:
    """The first few one by one: a report may hold hundreds of links."""
    problems = [f"{m.path or 'It'} was left out: {m.problem}." for m in members if m.problem]
    more = len(problems) - _LISTED_PROBLEMS
    return [*problems[:_LISTED_PROBLEMS], f"{more:,} more were left out."] if more > 0 else problems


def store_text(text: Received, session: DiagnosisSession, user: User | None) -> Received:
    """The text with its evidence: the row of the same bytes since the last change, else a new one. user None: the
    host admin, who answers by a link without an account."""
    blob = blob_store.store(text.raw)
    with transaction.atomic():  # two that send the same bytes at once store one row
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        evidence = Evidence.objects.filter(
            session=session,
            sha256=blob.columns["sha256"],
            view=text.view,
            epoch=session.epoch,
            run=None,
            purged_at=None,
            set_aside_at=None,
        ).first()
        if evidence is None:
            evidence = Evidence.store(blob, **columns_of(text), session=session, epoch=session.epoch, created_by=user)
    return replace(text, evidence=evidence)


def store_answers(run: Run, outputs: Iterable[Received]) -> tuple[Received, ...]:
    """A run's answers with their evidence; each reader's first answer counts, and is stored once."""
    answers: dict[str, Received] = {}
    for output in outputs:
        answers.setdefault(output.reader, output)
    blobs = {reader: blob_store.store(output.raw) for reader, output in answers.items()}
    owner = {"session": run.session, "run": run, "epoch": run.epoch, "created_by": run.created_by}
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        stored = {evidence.reader: evidence for evidence in run.evidence.defer("body", "stderr")}
        new = [(blobs[o.reader], columns_of(o) | owner) for o in answers.values() if o.reader not in stored]
        stored |= {evidence.reader: evidence for evidence in Evidence.store_all(new)}
    return tuple(replace(output, evidence=stored[reader]) for reader, output in answers.items())


def columns_of(output: Received) -> dict[str, Any]:
    """The columns of its evidence, beside those of its bytes and of its session."""
    return {
        "reader": output.reader,
        "view": output.view,
        "origin": output.origin,
        "label": output.label[:200],
        "stderr": output.stderr,
        "meta": dict(output.meta),
    }
