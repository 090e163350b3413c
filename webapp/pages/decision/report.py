"""The report of a session as a file."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from webapp.pages.shell import on_session
from webapp.records.models import DiagnosisSession
from webapp.records.redaction import RedactionError
from webapp.review.report.files import MEDIA_TYPES, report_file


@require_safe
@on_session
def report(request: HttpRequest, session: DiagnosisSession, form: str) -> HttpResponse:
    """form: md or json; redacted unless ?raw=1."""
    if form not in MEDIA_TYPES:
        raise Http404
    try:
        body = report_file(session, form, raw=bool(request.GET.get("raw")))
    except RedactionError as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(body, content_type=MEDIA_TYPES[form])
    name = f"peerpath-{str(session.pk)[:8]}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
