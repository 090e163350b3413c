"""The content security policy: nothing inline, nothing from elsewhere. And how much may be sent."""

import re
from collections.abc import Callable
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from webapp.api.auth import has_token
from webapp.api.problems import PREFIX
from webapp.handoff.models import OPENED, Link

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# Files are written to a temporary folder before any view looks at them, so the limit stands in front.
LARGEST_REQUEST_BYTES = 100 * 2**20
LARGEST_ANONYMOUS_REQUEST_BYTES = 2**16
_LINK_PAGE = re.compile(r"/asked/([0-9a-f-]{36})/answer\Z")


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        # A cookie, unlike a token, does not say to a proxy that the answer is one person's.
        response.headers.setdefault("Cache-Control", "private, no-cache")
        # Fragments and pages share addresses; a cache must not mix them up.
        response.headers["Vary"] = ", ".join(filter(None, [response.headers.get("Vary"), "HX-Request"]))
        return response

    return middleware


def limited_requests(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Refuses requests that are too large, without reading them. Visitors without an account, link or token have a
    lower limit."""

    def middleware(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() and len(length) < 20 else LARGEST_REQUEST_BYTES + 1
        too_large = size > LARGEST_REQUEST_BYTES or (size > LARGEST_ANONYMOUS_REQUEST_BYTES and not _is_known(request))
        return render(request, "413.html", status=413) if too_large else get_response(request)

    return middleware


def without_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Removes NUL from every field of a form and of the query: nobody types one, and PostgreSQL refuses it in
    texts. No page has one in its address."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if "\0" in request.path_info:
            raise Http404
        request.GET = _without_nul(request.GET)
        if request.method == "POST":
            request.POST = _without_nul(request.POST)
        return get_response(request)

    return middleware


def _without_nul(fields: QueryDict) -> Any:
    """The same kind of fields; django-stubs has a private name for those that nobody changes."""
    if not any("\0" in text for name, values in fields.lists() for text in (name, *values)):
        return fields
    cleaned = QueryDict(mutable=True, encoding=fields.encoding)
    for name, values in fields.lists():
        texts = [str(value).replace("\0", "") for value in values]
        cleaned.setlist(name.replace("\0", ""), texts)
    return cleaned


def _is_known(request: HttpRequest) -> bool:
    """Signed in, or with a token to the API, or sending to the page of a link that this browser opened
    and that is still open."""
    if request.path_info.startswith(PREFIX):
        return has_token(request)
    if SESSION_KEY in request.session:
        return True
    sent_to = _LINK_PAGE.match(request.path)
    if not sent_to or sent_to[1] not in request.session.get(OPENED, []):
        return False
    link = Link.objects.filter(pk=sent_to[1]).first()
    return link is not None and link.is_open
