"""Every refusal and error as one JSON object (RFC 9457, application/problem+json)."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel

MEDIA_TYPE = "application/problem+json"
PREFIX = "/api/"
_SAID = {
    400: "The request cannot be read.",
    404: "There is nothing at this address, or you may not see it.",
    405: "This address does not take that method.",
    413: "It is larger than what is taken: 100 MiB, and 64 KiB without a token.",
    500: "Something went wrong here; it was logged.",
    503: "Peerpath cannot use its database or storage now; ask again in a moment.",
}
# The page's own; what guards it guards the problem, too.
_OF_THE_BODY = frozenset({"Content-Type", "Content-Length", "Content-Language", "Content-Disposition"})


class Wrong(BaseModel):
    """where: "body.title", "query.limit"."""

    where: str
    what: str


class Problem(BaseModel):
    """type: always about:blank, the status says it. detail: a sentence for people. errors: of a 422, each
    field that was wrong."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Wrong] = []


def documented(reason: str) -> dict[str, Any]:
    """A refusal as OpenAPI has it."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": reason, "content": {MEDIA_TYPE: {"schema": schema}}}


# Of what may be purged, lost, or not be redacted.
LEAVING = {410: documented("Its bytes were purged."), 503: documented("It cannot be read or redacted now.")}


class RefusedError(Exception):
    """Ends a request with this answer."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, errors: list[dict[str, str]] | None = None
) -> HttpResponse:
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **({"errors": errors} if errors else {}),
    }
    return HttpResponse(json.dumps(body), status=status, content_type=MEDIA_TYPE, headers=headers)


def as_problems(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Whoever refused a request under /api/, a program gets a problem and never a page."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        is_problem = response.headers.get("Content-Type", "").startswith(MEDIA_TYPE)
        if response.status_code < 400 or is_problem or not request.path_info.startswith(PREFIX):
            return response
        reason = _SAID.get(response.status_code, HTTPStatus(response.status_code).phrase + ".")
        headers = {k: v for k, v in response.headers.items() if k not in _OF_THE_BODY}
        return problem(response.status_code, reason, headers)

    return middleware
