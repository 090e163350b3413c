"""Idempotency-Key: a request that creates something may be sent again, and creates it once.

The answer is kept a day. One that changed nothing (any but 2xx) is not: the same key may be tried again.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja.decorators import decorate_view
from ninja.operation import Operation
from ninja.utils import contribute_operation_callback

from webapp.accounts.models import ApiToken
from webapp.api.auth import token_of
from webapp.api.models import Remembered
from webapp.api.problems import RefusedError, problem

KEPT = timedelta(days=1)
LONGEST = timedelta(minutes=10)  # to answer; after that, who was to answer is gone
_KEY = re.compile(r"[!-~]{1,255}")
_HEADERS = ("Content-Type", "ETag", "Location")
F = TypeVar("F", bound=Callable[..., Any])
Run = Callable[..., HttpResponse]
PARAMETER = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "description": "The same key and request within a day: the same answer, and nothing is made again.",
}


def remembered(*, without: str = "", also: Mapping[str, Any] | None = None) -> Callable[[F], F]:
    """For an operation that creates something. without: a field of its answer that is shown once and
    not kept; it is null when the answer is repeated. also: what else its description says."""

    def documented(operation: Operation) -> None:
        operation.openapi_extra = {"parameters": [PARAMETER], **(also or {})}

    def decorated(view: F) -> F:
        contribute_operation_callback(view, documented)
        return decorate_view(lambda run: _once(run, without))(view)

    return decorated


def _once(run: Run, without: str) -> Run:
    @wraps(run)
    def wrapped(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return run(request, **kwargs)
        try:
            return _answered(request, key, without, lambda: run(request, **kwargs))
        except RefusedError as error:
            return problem(error.status, error.detail, error.headers)

    return wrapped


def _answered(request: HttpRequest, key: str, without: str, run: Callable[[], HttpResponse]) -> HttpResponse:
    if not _KEY.fullmatch(key):
        raise RefusedError(422, "An Idempotency-Key has 1 to 255 visible ASCII characters.")
    fingerprint = _fingerprint(request)
    row, ours = _row(token_of(request), key, fingerprint)
    if not ours:
        return _repeated(row, fingerprint)
    try:
        response = run()
        _keep(row, response, without)
        return response
    finally:
        if row.status is None:  # nothing was made, so that the key may be used again
            row.delete()


def _row(token: ApiToken, key: str, fingerprint: str) -> tuple[Remembered, bool]:
    """The key's row, and whether it was made now: of two requests at once, one makes it."""
    now = timezone.now()
    Remembered.objects.filter(made_at__lt=now - KEPT).delete()
    Remembered.objects.filter(made_at__lt=now - LONGEST, status=None).delete()
    try:
        with transaction.atomic():
            return Remembered.objects.create(token=token, key=key, fingerprint=fingerprint), True
    except IntegrityError:
        # Gone again when the other one was refused meanwhile; then this one is told to ask once more.
        remembered_row = Remembered.objects.filter(token=token, key=key).first()
        return remembered_row or Remembered(fingerprint=fingerprint), False


def _repeated(row: Remembered, fingerprint: str) -> HttpResponse:
    if row.fingerprint != fingerprint:
        raise RefusedError(422, "This Idempotency-Key was used for another request.")
    if row.status is None:
        raise RefusedError(409, "The request of this Idempotency-Key is being answered; ask again.")
    headers = {**row.headers, "Idempotency-Replayed": "true"}
    return HttpResponse(bytes(row.body), status=row.status, headers=headers)


def _keep(row: Remembered, response: HttpResponse, without: str) -> None:
    if not 200 <= response.status_code < 300:
        return
    row.status, row.body = response.status_code, response.content
    if without:
        row.body = json.dumps({**json.loads(response.content), without: None}).encode()
    row.headers = {name: response.headers[name] for name in _HEADERS if name in response.headers}
    row.save(update_fields=["status", "body", "headers"])


def _fingerprint(request: HttpRequest) -> str:
    """Of method, address and content; a form's parts, since their boundary differs each time."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\0".encode())
    is_form = request.content_type == "multipart/form-data"
    for part in _parts(request) if is_form else (request.body,):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _parts(request: HttpRequest) -> Iterator[bytes]:
    yield json.dumps(sorted(request.POST.lists())).encode()
    for name, files in sorted(request.FILES.lists()):
        for file in files:
            yield f"{name}\0{file.name}".encode()
            yield file.read()
            file.seek(0)
