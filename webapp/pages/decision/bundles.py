"""Exports a session as one file, and opens a file from elsewhere."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from webapp.pages.shell import acting, on_session
from webapp.records.models import DiagnosisSession
from webapp.records.redaction import RedactionError, key_of
from webapp.review.bundle.export import bundle
from webapp.review.bundle.format import BundleError
from webapp.review.bundle.importing import LARGEST_BYTES, READ_WITHIN_S, open_bundle
from webapp.review.bundle.redacted import shareable


@require_safe
@on_session
def take_away(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Redacts unless ?raw=1; ?key=1 gives the real value of each replacement word."""
    raw = bool(request.GET.get("raw"))
    try:
        if request.GET.get("key"):
            return _key_file(session)
        body = bundle(session) if raw else shareable(session)
    except RedactionError as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(body, content_type="application/zip")
    name = f"peerpath-{str(session.pk)[:8]}{'' if raw else '-redacted'}.zip"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _key_file(session: DiagnosisSession) -> HttpResponse:
    """For members who may read the outputs unredacted. Raises RedactionError."""
    lines = [f"{token}\t{secret}\n" for token, secret in key_of(session).items()]
    response = HttpResponse("".join(lines), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="peerpath-{str(session.pk)[:8]}-key.txt"'
    return response


@require_POST
def open_elsewhere(request: HttpRequest) -> HttpResponse:
    user = acting(request)
    if not user.may_open_sessions:
        raise PermissionDenied("Opening a bundle opens a session; your account may not do that.")
    file = request.FILES.get("bundle")
    if file is None or (file.size or 0) > LARGEST_BYTES:
        messages.error(request, "Choose the zip file that “Take away” gave, of at most 200 MiB.")
        return redirect("session:start")
    try:
        opened = open_bundle(file.read(), user=user)
    except BundleError as error:
        messages.error(request, f"{file.name}: {error}")
        return redirect("session:start")
    if opened.same:
        messages.success(request, "Opened; today’s reasoning gives the same diagnosis here.")
    else:
        messages.warning(
            request,
            "Opened. This version of Peerpath reads or reasons differently from the one it was made "
            "with: the diagnosis shown is this one's.",
        )
    if opened.unread:
        messages.warning(
            request,
            f"{opened.unread} of its outputs were kept and not read: all took more than"
            f" {READ_WITHIN_S:.0f} s. An administrator has them read on the page Stuck.",
        )
    return redirect("session:diagnosis", opened.session.pk)
