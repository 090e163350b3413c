"""Evidence: what came in, and giving more."""

import re
from datetime import datetime
from itertools import islice
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import File, Query, Router, Status, UploadedFile
from pydantic import BaseModel, Field

from agents.facts import View
from agents.framing import clean
from webapp.accounts.models import Role
from webapp.api.auth import READ, WRITE
from webapp.api.declared import filled
from webapp.api.idempotency import remembered
from webapp.api.paging import NO_CURSOR, Asked, Page, page
from webapp.api.problems import LEAVING, RefusedError
from webapp.api.request_context import Sent, session_of, user_of
from webapp.records import blob_store, intake
from webapp.records.assignments import TAKE_BACK, AssignmentError, assign, check_assignment, take_back
from webapp.records.evidence_rows import evidence_named
from webapp.records.long_text import LONGEST_SHOWN, LongText, shortened
from webapp.records.models import Assignment, DiagnosisSession, Evidence
from webapp.records.received import LARGEST_UPLOAD_BYTES, Upload
from webapp.records.redaction import RedactionError, redacted, with_report
from webapp.records.reread import reread

router = Router(tags=["evidence"])
S = "/sessions/{uuid:session_id}"
TEXT = "text/plain; charset=utf-8"
GONE = "It was purged; its hash and what was read from it are kept."
AT_LEAST_ONE: dict[str, Any] = {
    "requestBody": {"content": {"multipart/form-data": {"schema": {"properties": {"file": {"minItems": 1}}}}}}
}
A_TEXT: dict[str, Any] = {"responses": {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **LEAVING}}


class Piece(BaseModel):
    """One raw output. name: how claims cite it. unplaced: [first, last] lines that nobody could place;
    doubts: lines that could be either machine's."""

    name: str
    reader: str
    view: str
    origin: str
    label: str
    sha256: str
    size_bytes: int
    epoch: int
    unplaced: list[list[int]]
    doubts: list[list[Any]]
    purged: bool
    created_at: datetime


class ReadFact(BaseModel):
    fact_id: str
    kind: str
    value: Any
    detail: str
    lines: list[int]
    missing: list[str]


class SaidOfLines(BaseModel):
    """Neither reader nor view: what was said before of these lines counts no more."""

    first: int
    last: int
    reader: str
    view: str
    by: str
    at: datetime


class PieceRead(Piece):
    """With what today's parsers read in it. errors: what came on standard error, a long one's beginning.
    assigned: what people said of lines, the newest of the same ones counts."""

    readings: list[ReadFact]
    errors: str
    assigned: list[SaidOfLines]


class Paste(Sent):
    """text: of any number of outputs, best with the command lines above them. role: whose they are, ""
    when they say so themselves. hide: names, addresses and serials are replaced before it is stored."""

    text: str = Field(min_length=1, max_length=LARGEST_UPLOAD_BYTES)
    name: str = Field("", max_length=200)
    role: Literal["guest", "host", ""] = ""
    hide: bool = False


class About(BaseModel):
    role: Literal["guest", "host", ""] = ""
    hide: bool = False


class Part(BaseModel):
    """One output that was understood. lines: its first and last, null for the whole."""

    reader: str
    title: str
    lines: list[int] | None


class Given(BaseModel):
    evidence: str
    duplicate: bool
    understood: list[Part]
    unplaced: list[list[int]]


class Understanding(BaseModel):
    """What became of what was given. notes: what was not taken, in sentences."""

    given: list[Given]
    notes: list[str]
    recognised: int


class LineMeaning(Sent):
    """These lines are for this reader or this machine's; take_back: what was said counts no more."""

    first: int = Field(ge=1, le=2**31)
    last: int = Field(ge=1, le=2**31)
    reader: str = Field("", max_length=100)
    view: Literal["guest", "host", ""] = ""
    take_back: bool = False


class Sentence(BaseModel):
    said: str


class RereadOne(BaseModel):
    """changed: whether it reads differently now; its readings say how."""

    changed: bool


class Redaction(BaseModel):
    """redacted: without names, addresses and serials; what was hidden is told at the end."""

    redacted: bool = False


class LineWords(Asked):
    """words: as they stand in the line, in any case of ASCII letters."""

    words: str = Field(min_length=1, max_length=200)


class FoundLine(BaseModel):
    """number: from 1, as claims cite it. cut: bytes of a long line that are left out of its text."""

    number: int
    text: str
    cut: int


class Reread(BaseModel):
    """changed: names of the evidence that reads differently today; facts and verdicts that changed."""

    read: int
    changed: list[str]
    facts: list[str]
    verdicts: list[str]


def _plain(evidence: Evidence) -> dict[str, Any]:
    names = set(Piece.model_fields) - {"purged"}
    return {name: getattr(evidence, name) for name in names} | {"purged": evidence.purged_at is not None}


@router.get(S + "/evidence", auth=READ, response=Page[Piece])
def list_evidence(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Piece]:
    """The session's outputs, the newest first."""
    rows = session_of(request, session_id).evidence.defer("body", "stderr")
    records, following = page(rows, query, by="id")
    return Page[Piece](items=[Piece(**_plain(one)) for one in records], next=following)


@router.post(S + "/evidence", auth=WRITE, response={201: Understanding})
@remembered()
def paste_evidence(request: HttpRequest, session_id: UUID, sent: Paste) -> Status[Understanding]:
    """Takes a text, as the pages' paste boxes do, and says what was understood."""
    session = session_of(request, session_id, Role.OPERATOR)
    upload = Upload(sent.name, sent.text.encode())
    return Status(201, _received(request, session, [upload], sent.role, hide=sent.hide))


@router.post(S + "/evidence/files", auth=WRITE, response={201: Understanding})
@remembered(also=AT_LEAST_ONE)
def upload_evidence(
    request: HttpRequest, session_id: UUID, file: File[list[UploadedFile]], about: Query[About]
) -> Status[Understanding]:
    """Takes files, archives among them, of at most 50 MiB each."""
    session = session_of(request, session_id, Role.OPERATOR)
    if any((one.size or 0) > LARGEST_UPLOAD_BYTES for one in file):
        raise RefusedError(413, "A file has at most 50 MiB. Give the part that matters, or compress it.")
    uploads = [Upload(one.name or "a file", one.read()) for one in file]
    return Status(201, _received(request, session, uploads, about.role, hide=about.hide))


def _received(
    request: HttpRequest, session: DiagnosisSession, uploads: list[Upload], role: str, *, hide: bool
) -> Understanding:
    filled = [upload for upload in uploads if upload.raw.strip()]
    if not filled:
        raise RefusedError(422, "Nothing was given: it is empty.")
    view = View(role) if role else None
    user = user_of(request)
    received = intake.take_uploads(session, filled, user=user, view=view, label="given by the API", hide=hide)
    return _understanding(received)


def _understanding(received: intake.Intake) -> Understanding:
    notes = [*received.notes, *(note for text in received.texts for note in text.notes)]
    outputs = [
        Given(
            evidence=text.evidence.name,
            duplicate=text.duplicate,
            understood=[
                Part(reader=p.reader, title=p.title, lines=list(p.lines) if p.lines else None) for p in text.understood
            ],
            unplaced=[list(lines) for lines in text.unplaced],
        )
        for text in received.texts
    ]
    return Understanding(given=outputs, notes=notes, recognised=len(received.understood))


@router.get(S + "/evidence/{str:name}", auth=READ, response=PieceRead)
def read_evidence(request: HttpRequest, session_id: UUID, name: str) -> PieceRead:
    """One output and what is read in it."""
    evidence = evidence_named(session_of(request, session_id), name)
    columns = tuple(ReadFact.model_fields)
    readings = [ReadFact(**row) for row in evidence.readings.values(*columns)]
    errors = shortened(clean(bytes(evidence.stderr)))
    assigned = [_assigned(one) for one in evidence.assignments.select_related("created_by")]
    return PieceRead(readings=readings, errors=errors, assigned=assigned, **_plain(evidence))


def _assigned(one: Assignment) -> SaidOfLines:
    return filled(SaidOfLines, one, by=one.created_by.username, at=one.created_at)


@router.get(S + "/evidence/{str:name}/raw", auth=READ, response={200: None}, openapi_extra=A_TEXT)
def raw_evidence(request: HttpRequest, session_id: UUID, name: str, query: Query[Redaction]) -> HttpResponse:
    """The bytes as they came, or redacted."""
    evidence = evidence_named(session_of(request, session_id), name)
    if evidence.purged_at:
        raise RefusedError(410, GONE)
    try:
        body = with_report(redacted(evidence)) if query.redacted else evidence.raw
    except (RedactionError, blob_store.LostError) as error:
        raise RefusedError(503, str(error)) from error
    return HttpResponse(body, content_type=TEXT)


@router.get(S + "/evidence/{str:name}/find", auth=READ, response=Page[FoundLine], openapi_extra={"responses": LEAVING})
def find_lines(request: HttpRequest, session_id: UUID, name: str, query: Query[LineWords]) -> Page[FoundLine]:
    """The lines of one output that hold these words, from the first on."""
    evidence, after = evidence_named(session_of(request, session_id), name), _line_of(query)
    if evidence.purged_at:
        raise RefusedError(410, GONE)
    try:
        return _lines_with(evidence.text, query, after)
    except blob_store.LostError as error:
        raise RefusedError(503, str(error)) from error


def _lines_with(text: LongText, query: LineWords, after: int) -> Page[FoundLine]:
    numbers = list(islice(text.find(query.words, after), query.limit + 1))
    of_page = numbers[: query.limit]
    items = [
        FoundLine(
            number=number, text=raw[:LONGEST_SHOWN].decode(errors="replace"), cut=max(0, len(raw) - LONGEST_SHOWN)
        )
        for number, raw in zip(of_page, text.at(of_page), strict=True)
    ]
    return Page[FoundLine](items=items, next=str(of_page[-1]) if len(numbers) > len(of_page) else None)


def _line_of(query: Asked) -> int:
    """The line that the page before ended with, 0 for none. Raises RefusedError."""
    if not re.fullmatch(r"[0-9]{0,12}", query.cursor):
        raise RefusedError(422, NO_CURSOR)
    return int(query.cursor or 0)


@router.post(S + "/evidence/{str:name}/lines", auth=WRITE, response=Sentence)
def assign_lines(request: HttpRequest, session_id: UUID, name: str, sent: LineMeaning) -> Sentence:
    """Says what lines are that nobody could place, or that could be either machine's."""
    session, user = session_of(request, session_id, Role.OPERATOR), user_of(request)
    evidence = evidence_named(session, name)
    lines = (sent.first, sent.last)
    try:
        check_assignment(evidence, lines, sent.reader or sent.view or (TAKE_BACK if sent.take_back else ""))
    except AssignmentError as error:
        raise RefusedError(422, str(error)) from error
    if sent.take_back:
        return Sentence(said=take_back(evidence, lines, user=user))
    view = View(sent.view) if sent.view else None
    return Sentence(said=assign(evidence, lines, user=user, reader=sent.reader, view=view))


@router.post(S + "/evidence/{str:name}/reread", auth=WRITE, response=RereadOne)
def reread_evidence(request: HttpRequest, session_id: UUID, name: str) -> RereadOne:
    """Applies today's parsers to one stored output, as to one whose reading was cut short."""
    evidence = evidence_named(session_of(request, session_id, Role.OPERATOR), name)
    if evidence.purged_at:
        raise RefusedError(410, GONE)
    try:
        return RereadOne(changed=intake.reread_one(evidence))
    except blob_store.LostError as error:
        raise RefusedError(503, str(error)) from error


@router.post(S + "/reread", auth=WRITE, response=Reread)
def reread_session(request: HttpRequest, session_id: UUID) -> Reread:
    """Applies today's parsers to the stored evidence."""
    (report,) = reread(session_of(request, session_id, Role.OPERATOR))
    return Reread(
        read=report.read,
        changed=list(report.changed),
        facts=[change.fact_id for change in report.facts],
        verdicts=[change.hypothesis for change in report.verdicts],
    )
