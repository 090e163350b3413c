"""ETag, If-Match and If-None-Match: nobody overwrites what somebody else wrote, nobody fetches what they
have."""

import hashlib
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from ninja.decorators import decorate_view
from ninja.operation import Operation
from ninja.utils import contribute_operation_callback

from webapp.api.problems import RefusedError

F = TypeVar("F", bound=Callable[..., Any])
Run = Callable[..., HttpResponse]

IF_MATCH = {
    "parameters": [{"in": "header", "name": "If-Match", "required": True, "schema": {"type": "string", "minLength": 1}}]
}
NOT_MODIFIED = {
    "parameters": [{"in": "header", "name": "If-None-Match", "required": False, "schema": {"type": "string"}}],
    "responses": {304: {"description": "You have these bytes: the ETag is the one you sent."}},
}
_TAG = re.compile(r'"([!#-~]*)"')


def version_tag(version: int) -> str:
    return f'"{version}"'


def tag_of(body: bytes, version: int | None = None) -> str:
    """Another one for every other body. version: of what a change overwrites, which is less than the body
    says (who reads it as what, what others approved); If-Match goes by it alone."""
    digest = hashlib.sha256(body).hexdigest()[:32]
    return f'"{digest}"' if version is None else f'"{version}-{digest}"'


def asked_version(request: HttpRequest, current: int) -> int:
    """The version that If-Match names. Raises RefusedError: 428 without one, 412 when it is another."""
    if_match = request.headers.get("If-Match", "").strip()
    if not if_match:
        raise RefusedError(428, "Send If-Match with the ETag that you read, so nobody's words are lost.")
    if if_match == "*" or str(current) in {tag.partition("-")[0] for tag in _TAG.findall(if_match)}:
        return current
    raise RefusedError(412, "Somebody changed it since you read it. Read it again.", {"ETag": version_tag(current)})


def revalidated(view: F) -> F:
    """For every GET whose answer has an ETag: 304 without a body for who has these bytes already."""

    def documented(operation: Operation) -> None:
        operation.openapi_extra = NOT_MODIFIED

    contribute_operation_callback(view, documented)
    return decorate_view(_unless_known)(view)


def _unless_known(run: Run) -> Run:
    @wraps(run)
    def wrapped(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        response = run(request, **kwargs)
        tag, if_none_match = response.headers.get("ETag"), request.headers.get("If-None-Match", "").strip()
        known = if_none_match == "*" or (tag or "").strip('"') in _TAG.findall(if_none_match)
        if response.status_code != 200 or tag is None or not known:
            return response
        return HttpResponse(status=304, headers={"ETag": tag})

    return wrapped
