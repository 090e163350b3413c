"""ETag, If-Match and If-None-Match: nobody overwrites what somebody else wrote, nobody fetches what they
have."""

from __future__ import annotations

import hashlib
import re

from django.http import HttpRequest, HttpResponse

from webapp.api.problems import RefusedError

IF_MATCH = {
    "parameters": [
        {
            "in": "header",
            "name": "If-Match",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
        }
    ]
}
_TAG = re.compile(r'"([!#-~]*)"')


def version_tag(version: int) -> str:
    return f'"{version}"'


def asked_version(request: HttpRequest, current: int) -> int:
    """The version that If-Match names. Raises RefusedError: 428 without one, 412 when it is another."""
    given = request.headers.get("If-Match", "").strip()
    if not given:
        raise RefusedError(
            428, "Send If-Match with the ETag that you read, so nobody's words are lost."
        )
    if given == "*" or str(current) in _TAG.findall(given):
        return current
    raise RefusedError(
        412, "Somebody changed it since you read it. Read it again.", {"ETag": version_tag(current)}
    )


def unless_known(request: HttpRequest, body: bytes, media_type: str) -> HttpResponse:
    """The body with its hash as ETag; 304 without it for who has these bytes already."""
    tag = hashlib.sha256(body).hexdigest()[:32]
    given = request.headers.get("If-None-Match", "").strip()
    headers = {"ETag": f'"{tag}"', "Cache-Control": "private, no-cache"}
    if given == "*" or tag in _TAG.findall(given):
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(body, content_type=media_type, headers=headers)
