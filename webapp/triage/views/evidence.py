"""The raw lines a claim rests on, highlighted in their context."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET

from agents.framing import clean
from agents.redaction import Redacted
from webapp.triage import bodies
from webapp.triage.models import DiagnosisSession, Evidence
from webapp.triage.redacting import RedactionError, redacted
from webapp.triage.views.shell import on_session, shell

# A page shows this many lines from a little above the first one asked for; the whole can be
# downloaded.
WINDOW, CONTEXT = 400, 60
# A line may be as long as the whole; so many characters of one, and of standard error, are shown.
LONGEST_SHOWN = 20_000
_LINE = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str
    marked: bool


@require_GET
@on_session
def evidence(request: HttpRequest, session: DiagnosisSession, name: str) -> HttpResponse:
    found = find(session, name)
    if request.GET.get("download"):
        return _download(found, raw=request.GET["download"] != "redacted")
    problem = ""
    try:
        raw = found.raw
    except bodies.LostError as error:
        raw, problem = b"", str(error)
    marked = [int(n) for n in request.GET.get("line", "").split(",")[:50] if _LINE.fullmatch(n)]
    lines = [] if found.purged_at or problem else clean(raw).split("\n")
    first = max(0, min(marked, default=0) - 1 - CONTEXT)
    shown = [
        Line(number, _shortened(text), number in marked)
        for number, text in enumerate(lines[first : first + WINDOW], first + 1)
    ]
    context = shell(
        session,
        "",
        evidence=found,
        problem=problem,
        lines=shown,
        total=len(lines),
        asked=marked[:3],
        readings=found.readings.all(),
        assigned=found.assignments.exists(),
        errors=_shortened(clean(bytes(found.stderr))),
    )
    return TemplateResponse(request, "triage/evidence.html", context)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_SHOWN:
        return text
    left = len(text) - LONGEST_SHOWN
    return f"{text[:LONGEST_SHOWN]} … {left:,} more characters: download it to see all"


def _download(evidence: Evidence, *, raw: bool) -> HttpResponse:
    """As it came, for members who ask; or redacted, with what was hidden told at the end."""
    if evidence.purged_at:
        return HttpResponse(
            "Its raw output was purged; the hash and what was read from it are kept.\n",
            status=410,
            content_type="text/plain; charset=utf-8",
        )
    try:
        body = evidence.raw if raw else without_secrets(redacted(evidence))
    except (RedactionError, bodies.LostError) as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(body, content_type="text/plain; charset=utf-8")
    name = evidence.reader if raw else f"{evidence.reader}.redacted"
    response["Content-Disposition"] = f'attachment; filename="{name}.txt"'
    return response


def without_secrets(result: Redacted) -> bytes:
    """Below the text, so that its line numbers stay."""
    report = [
        f"# redacted: {entry.kind.replace('_', ' ')}, {entry.count} in line"
        f"{'' if len(entry.lines) == 1 else 's'} {', '.join(map(str, entry.lines[:20]))}"
        f"{' and others' if len(entry.lines) > 20 else ''}"
        for entry in result.report
    ]
    return "\n".join([result.text.rstrip("\n"), *report, ""]).encode()


def find(session: DiagnosisSession, name: str) -> Evidence:
    """By its name, "<reader>@<12 hex>"; 404 when this session has none of that name."""
    reader, _, digest = name.rpartition("@")
    found = session.evidence.filter(reader=reader, sha256__startswith=digest).last()
    if found is None or len(digest) < 12:
        raise Http404("No such evidence in this session.")
    return found
