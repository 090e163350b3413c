"""What leaves a session as a file: the report, and the bundle that opens elsewhere."""

from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router
from pydantic import BaseModel

from webapp.api.auth import READ
from webapp.api.problems import LEAVING, RefusedError
from webapp.api.request_context import session_of
from webapp.records.blob_store import LostError
from webapp.records.redaction import RedactionError, key_of
from webapp.review.bundle.export import bundle
from webapp.review.bundle.redacted import shareable
from webapp.review.report.files import MEDIA_TYPES, report_file

router = Router(tags=["outgoing"])
S = "/sessions/{uuid:session_id}"
_TEXT = {"schema": {"type": "string"}}
REPORTS: dict[str, Any] = {
    "responses": {
        200: {"content": {"text/markdown": _TEXT, "application/json": {"schema": {"type": "object"}}}},
        **LEAVING,
    }
}
A_ZIP: dict[str, Any] = {
    "responses": {200: {"content": {"application/zip": {"schema": {"type": "string"}}}}, **LEAVING}
}


class Raw(BaseModel):
    """raw: with names, addresses and serials; else redacted."""

    raw: bool = False


@router.get(S + "/report/{form}", auth=READ, response={200: None}, openapi_extra=REPORTS)
def report(
    request: HttpRequest, session_id: UUID, form: Path[Literal["md", "json"]], query: Query[Raw]
) -> HttpResponse:
    """The report as one file."""
    session = session_of(request, session_id)
    try:
        body = report_file(session, form, raw=query.raw)
    except (RedactionError, LostError) as error:
        raise RefusedError(503, str(error)) from error
    return HttpResponse(body, content_type=MEDIA_TYPES[form])


@router.get(S + "/bundle", auth=READ, response={200: None}, openapi_extra=A_ZIP)
def take_away(request: HttpRequest, session_id: UUID, query: Query[Raw]) -> HttpResponse:
    """The whole session as a zip file."""
    session = session_of(request, session_id)
    try:
        body = bundle(session) if query.raw else shareable(session)
    except (RedactionError, LostError) as error:
        raise RefusedError(503, str(error)) from error
    return HttpResponse(body, content_type="application/zip")


@router.get(S + "/redaction-key", auth=READ, response=dict[str, str], openapi_extra={"responses": LEAVING})
def read_redaction_key(request: HttpRequest, session_id: UUID) -> dict[str, str]:
    """What each word stands for that outputs are redacted by; keep it where the outputs may lie."""
    try:
        return key_of(session_of(request, session_id))
    except (RedactionError, LostError) as error:
        raise RefusedError(503, str(error)) from error
