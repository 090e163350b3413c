"""The content security policy: nothing inline, nothing from elsewhere. And how much may be sent."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# Files are written to a temporary folder before any view looks at them, so the limit stands in front.
LARGEST_REQUEST_BYTES = 100 * 2**20
LARGEST_ANONYMOUS_REQUEST_BYTES = 2**16


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        # Fragments and pages share addresses; a cache must not mix them up.
        response.headers["Vary"] = ", ".join(
            filter(None, [response.headers.get("Vary"), "HX-Request"])
        )
        return response

    return middleware


def limited_requests(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Refuses what is too large unread; who is not signed in has nothing large to send."""

    def middleware(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() and len(length) < 20 else LARGEST_REQUEST_BYTES + 1
        too_large = size > LARGEST_REQUEST_BYTES or (
            size > LARGEST_ANONYMOUS_REQUEST_BYTES and SESSION_KEY not in request.session
        )
        return render(request, "413.html", status=413) if too_large else get_response(request)

    return middleware
