"""What leaves a session as a file: the report, the bundle that opens elsewhere, and what they would hide."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router
from pydantic import BaseModel

from webapp.api.asking import session_of
from webapp.api.auth import READ
from webapp.api.problems import LEAVING, RefusedError
from webapp.review.bundle.export import bundle
from webapp.review.bundle.preview import Row, Rule, preview
from webapp.review.bundle.sharing import shareable
from webapp.review.views.report import rendered
from webapp.triage.bodies import LostError
from webapp.triage.redacting import RedactionError, key_of

router = Router(tags=["outgoing"])
S = "/sessions/{uuid:session_id}"
_TEXT = {"schema": {"type": "string"}}
REPORTS: dict[str, Any] = {
    "responses": {
        200: {
            "content": {"text/html": _TEXT, "text/markdown": _TEXT, "application/json": {"schema": {"type": "object"}}}
        },
        **LEAVING,
    }
}
A_ZIP: dict[str, Any] = {
    "responses": {200: {"content": {"application/zip": {"schema": {"type": "string"}}}}, **LEAVING}
}


class Raw(BaseModel):
    """raw: with names, addresses and serials; else redacted."""

    raw: bool = False


class HiddenKind(BaseModel):
    """One kind of what is hidden. own: in the session's own texts, too. words: what stands in its place, and
    for what, "" where that is not shown; more: how many words are left out."""

    kind: str
    places: int
    outputs: int
    own: bool
    words: dict[str, str]
    more: int


class HiddenIn(BaseModel):
    """kinds: how often each is hidden there. lines: some of them; errors: on standard error, too."""

    evidence: str
    kinds: dict[str, int]
    lines: list[int]
    errors: bool


class WouldHide(BaseModel):
    """outputs: those with most to hide; unlisted: how many more have something; silent: nothing. own: in the
    session's own texts. before: what was hidden before it came here. counted: of `total` outputs, those that
    were looked at."""

    kinds: list[HiddenKind]
    outputs: list[HiddenIn]
    own: dict[str, int]
    before: dict[str, int]
    counted: int
    total: int
    unlisted: int
    silent: int


class HowFar(BaseModel):
    """everything: long outputs are looked at, too, which may take a while."""

    everything: bool = False


@router.get(S + "/report/{form}", auth=READ, response={200: None}, openapi_extra=REPORTS)
def report(
    request: HttpRequest, session_id: UUID, form: Path[Literal["html", "md", "json"]], asked: Query[Raw]
) -> HttpResponse:
    """The report as one file."""
    session = session_of(request, session_id)
    try:
        body, media_type = rendered(session, form, raw=asked.raw)
    except (RedactionError, LostError) as error:
        raise RefusedError(503, str(error)) from error
    return HttpResponse(body, content_type=media_type)


@router.get(S + "/bundle", auth=READ, response={200: None}, openapi_extra=A_ZIP)
def take_away(request: HttpRequest, session_id: UUID, asked: Query[Raw]) -> HttpResponse:
    """The whole session as a zip file."""
    session = session_of(request, session_id)
    try:
        body = bundle(session) if asked.raw else shareable(session)
    except (RedactionError, LostError) as error:
        raise RefusedError(503, str(error)) from error
    return HttpResponse(body, content_type="application/zip")


@router.get(S + "/hidden", auth=READ, response=WouldHide, openapi_extra={"responses": LEAVING})
def read_hidden(request: HttpRequest, session_id: UUID, asked: Query[HowFar]) -> WouldHide:
    """What a redacted report or bundle would hide, before it is taken away."""
    try:
        found = preview(session_of(request, session_id), everything=asked.everything)
    except (RedactionError, LostError) as error:
        raise RefusedError(503, str(error)) from error
    counts = {name: getattr(found, name) for name in ("counted", "total", "unlisted", "silent")}
    return WouldHide(
        kinds=[_kind(rule) for rule in found.rules],
        outputs=[_hidden_in(row) for row in found.rows],
        own=dict(found.own),
        before=dict(found.before),
        **counts,
    )


def _kind(rule: Rule) -> HiddenKind:
    plain = {name: getattr(rule, name) for name in ("kind", "places", "outputs", "own", "more")}
    return HiddenKind(words=dict(rule.words), **plain)


def _hidden_in(row: Row) -> HiddenIn:
    lines = [int(line) for line in row.lines.split(",") if line]
    return HiddenIn(evidence=row.evidence.name, kinds=dict(row.kinds), lines=lines, errors=row.errors)


@router.get(S + "/redaction-key", auth=READ, response=dict[str, str], openapi_extra={"responses": LEAVING})
def read_redaction_key(request: HttpRequest, session_id: UUID) -> dict[str, str]:
    """What each word stands for that outputs are redacted by; keep it where the outputs may lie."""
    try:
        return key_of(session_of(request, session_id))
    except (RedactionError, LostError) as error:
        raise RefusedError(503, str(error)) from error
