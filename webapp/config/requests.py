"""Sets a request's client address and log id before any other code reads it."""

import logging
import re
import time
from collections.abc import Callable
from ipaddress import ip_address
from secrets import token_hex

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from webapp import logs

Answer = Callable[[HttpRequest], HttpResponse]
_ID = re.compile(r"[0-9A-Za-z-]{8,64}")
# Asked every few seconds by machines.
_QUIET = ("/healthz/", "/metrics", "/static/")

logger = logging.getLogger(__name__)


def from_the_proxy(get_response: Answer) -> Answer:
    """With PEERPATH_BEHIND_PROXY the address is the last one of X-Forwarded-For: the proxy wrote that one itself,
    the client sent the ones before it."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if settings.BEHIND_PROXY:
            last = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
            if _is_address(last):
                request.META["REMOTE_ADDR"] = last
        return get_response(request)

    return middleware


def named(get_response: Answer) -> Answer:
    """Gives the request an id (the proxy's X-Request-ID, if it sends a plain one), answers it back, and
    logs one entry a request: without its query, in which people may have typed anything."""

    def middleware(request: HttpRequest) -> HttpResponse:
        sent = request.headers.get("X-Request-ID", "") if settings.BEHIND_PROXY else ""
        request_id = sent if _ID.fullmatch(sent) else token_hex(8)
        began = time.monotonic()
        with logs.belonging_to(request_id=request_id):
            response = get_response(request)
            if not request.path.startswith(_QUIET):
                _log(request, response, time.monotonic() - began)
        response.headers["X-Request-ID"] = request_id
        return response

    return middleware


def _log(request: HttpRequest, response: HttpResponse, seconds: float) -> None:
    about = {
        "method": request.method,
        "path": request.path,
        "status": response.status_code,
        "duration_ms": round(1000 * seconds, 1),
    }
    logger.info("%s %s %s", request.method, request.path, response.status_code, extra=about)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
