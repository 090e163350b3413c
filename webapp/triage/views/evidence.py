"""The raw lines a claim rests on, highlighted in their context."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET

from agents.framing import clean
from webapp.triage.models import DiagnosisSession, Evidence
from webapp.triage.views.shell import on_session, shell

# A page shows this many lines around the one asked for; the whole can be downloaded.
WINDOW = 400


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str
    marked: bool


@require_GET
@on_session
def evidence(request: HttpRequest, session: DiagnosisSession, name: str) -> HttpResponse:
    found = _find(session, name)
    if request.GET.get("download"):
        response = HttpResponse(bytes(found.body), content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{found.reader}.txt"'
        return response
    wanted = request.GET.get("line", "")
    marked = int(wanted) if wanted.isdigit() else 0
    lines = clean(bytes(found.body)).split("\n")
    first = max(0, marked - WINDOW // 2)
    shown = [
        Line(number, text, number == marked)
        for number, text in enumerate(lines[first : first + WINDOW], first + 1)
    ]
    context = shell(
        session,
        "",
        evidence=found,
        lines=shown,
        total=len(lines),
        readings=found.readings.all(),
        errors=clean(bytes(found.stderr)),
    )
    return TemplateResponse(request, "triage/evidence.html", context)


def _find(session: DiagnosisSession, name: str) -> Evidence:
    """By its name, "<reader>@<12 hex>"; 404 when this session has none of that name."""
    reader, _, digest = name.rpartition("@")
    found = session.evidence.filter(reader=reader, sha256__startswith=digest).last()
    if found is None or len(digest) < 12:
        raise Http404("No such evidence in this session.")
    return found
