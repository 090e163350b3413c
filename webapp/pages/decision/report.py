"""The report of a session as a file."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from webapp.diagnosis.diagnosis import Diagnosis
from webapp.pages.shell import on_session
from webapp.presenting.figures import ladder_rows, time_bar
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.redaction import RedactionError, hiding
from webapp.review.report.contents import Report, report_of
from webapp.review.report.files import MEDIA_TYPES, report_file

SHEETS = ("tokens", "base", "components", "tables", "ladder", "doors", "findings", "figures", "reasoning", "paper")


@require_safe
@on_session
def report(request: HttpRequest, session: DiagnosisSession, form: str) -> HttpResponse:
    """form: html, md or json; redacted unless ?raw=1."""
    if form not in {"html", "md", "json"}:
        raise Http404
    try:
        raw = bool(request.GET.get("raw"))
        body = _whole(session, raw=raw) if form == "html" else report_file(session, form, raw=raw)
    except RedactionError as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(body, content_type=MEDIA_TYPES.get(form, "text/html; charset=utf-8"))
    name = f"peerpath-{str(session.pk)[:8]}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _whole(session: DiagnosisSession, *, raw: bool) -> str:
    result = session_diagnosis(session)
    return _html(report_of(session, result, None if raw else hiding(session)), result)


def _html(found: Report, result: Diagnosis) -> str:
    """One file: our own style sheets are in it, and nothing is fetched."""
    context = {
        "report": found,
        "css": mark_safe("\n".join(map(_sheet, SHEETS))),  # noqa: S308 (files of ours)
        "bars": [(bound, time_bar(bound)) for bound in result.bounds],
        "ladder": ladder_rows(result.ladder),
    }
    return render_to_string("decision/report.html", context)


def _sheet(name: str) -> str:
    return (settings.STATIC_ROOT / "css" / f"{name}.css").read_text()
