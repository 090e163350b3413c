"""The report of a session as a file."""

from __future__ import annotations

import json
from dataclasses import asdict

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from webapp.diagnosis.diagnosis import Diagnosis
from webapp.review.report.contents import Report, report_of
from webapp.review.report.markdown import as_markdown
from webapp.triage.diagnoses import session_diagnosis
from webapp.triage.diagnosis_json import as_dict
from webapp.triage.figures import ladder_rows, time_bar
from webapp.triage.models import DiagnosisSession
from webapp.triage.redacting import RedactionError, hiding
from webapp.triage.views.shell import on_session

SHEETS = ("tokens", "base", "components", "tables", "ladder", "doors", "findings", "figures", "reasoning", "paper")


@require_safe
@on_session
def report(request: HttpRequest, session: DiagnosisSession, form: str) -> HttpResponse:
    """form: html, md or json; redacted unless ?raw=1."""
    if form not in {"html", "md", "json"}:
        raise Http404
    try:
        body, kind = rendered(session, form, raw=bool(request.GET.get("raw")))
    except RedactionError as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(body, content_type=kind)
    name = f"peerpath-{str(session.pk)[:8]}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def rendered(session: DiagnosisSession, form: str, *, raw: bool) -> tuple[str, str]:
    """The report and its media type. Raises RedactionError."""
    result = session_diagnosis(session)
    found = report_of(session, result, None if raw else hiding(session))
    if form == "html":
        return _html(found, result), "text/html; charset=utf-8"
    if form == "md":
        return as_markdown(found), "text/markdown; charset=utf-8"
    return _json(found, result), "application/json"


def _html(found: Report, result: Diagnosis) -> str:
    """One file: our own style sheets are in it, and nothing is fetched."""
    context = {
        "report": found,
        "css": mark_safe("\n".join(map(_sheet, SHEETS))),  # noqa: S308 (files of ours)
        "bars": [(bound, time_bar(bound)) for bound in result.bounds],
        "ladder": ladder_rows(result.ladder),
    }
    return render_to_string("review/report.html", context)


def _sheet(name: str) -> str:
    return (settings.STATIC_ROOT / "css" / f"{name}.css").read_text()


def _json(found: Report, result: Diagnosis) -> str:
    """The diagnosis whole only when nothing has to be hidden: its facts hold names and addresses."""
    record = {"schema": "peerpath.report/1", **asdict(found)}
    if not found.redacted:
        record["diagnosis"] = as_dict(result)
    return json.dumps(record, sort_keys=True, ensure_ascii=False, indent=1) + "\n"
