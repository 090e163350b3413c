"""The raw lines a claim rests on, highlighted in their context: as a page, in a dialog, or a few rows of a
long one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.framing import clean
from agents.redaction import Redacted
from webapp.triage import bodies
from webapp.triage.ansi import Piece, pieces
from webapp.triage.long_text import LongText
from webapp.triage.models import DiagnosisSession, Evidence
from webapp.triage.redacting import RedactionError, redacted
from webapp.triage.views.shell import on_session, shell

# A page shows this many lines from a little above the first one asked for; ROWS more come as one scrolls.
WINDOW, CONTEXT, ROWS = 400, 60, 200
# A line may be as long as the whole; so many characters of one, and of standard error, are shown.
LONGEST_SHOWN = 20_000
# So many lines with the words looked for are counted.
MOST_HITS = 1000
_LINE = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    pieces: tuple[Piece, ...]
    cut: int
    marked: bool
    found: bool


@dataclass(frozen=True, slots=True)
class Hits:
    """Lines with the words looked for. at: the place of the one shown among them, from 1."""

    words: str
    lines: tuple[int, ...]
    at: int

    @property
    def line(self) -> int | None:
        return self.lines[self.at - 1] if self.lines else None

    @property
    def more(self) -> bool:
        return len(self.lines) == MOST_HITS

    @property
    def before(self) -> int:
        return self.at - 1 or len(self.lines)

    @property
    def after(self) -> int:
        return self.at % len(self.lines) + 1 if self.lines else 1


@require_safe
@on_session
def evidence(request: HttpRequest, session: DiagnosisSession, name: str) -> HttpResponse:
    found = find(session, name)
    if request.GET.get("download"):
        return _download(found, raw=request.GET["download"] != "redacted")
    context = _context(request, found)
    if request.GET.get("rows"):
        return TemplateResponse(request, "triage/_evidence_lines.html", context)
    if request.headers.get("HX-Request"):
        context = {"session": session, "in_dialog": True, **context}
        return TemplateResponse(request, "triage/_evidence.html", context)
    context = shell(
        session,
        "",
        readings=found.readings.all(),
        assigned=bool(found.assignments.all()),
        errors=shortened(clean(bytes(found.stderr))),
        **context,
    )
    return TemplateResponse(request, "triage/evidence.html", context)


def _context(request: HttpRequest, found: Evidence) -> dict[str, Any]:
    """What is shown of it: lines around those asked for, or around words, or from a given one on."""
    try:
        return _shown(request, found, found.text)
    except bodies.LostError as error:
        return _shown(request, found, LongText.of(b"")) | {"problem": str(error)}


def _shown(request: HttpRequest, found: Evidence, text: LongText) -> dict[str, Any]:
    marked = [int(n) for n in request.GET.get("line", "").split(",")[:50] if _LINE.fullmatch(n)]
    words, rows = request.GET.get("find", "").strip()[:200], _number(request, "rows")
    hits = None if rows else _hits(text, words, _number(request, "hit"))
    at = _number(request, "at") or (hits.line if hits else None) or min(marked, default=1)
    first = rows or max(1, min(at, text.total) - CONTEXT)
    sought = words.encode().lower()
    return {
        "evidence": found,
        "lines": [
            _line(
                number,
                raw,
                number in marked or number == _number(request, "at"),
                bool(sought) and sought in raw.lower(),
            )
            for number, raw in enumerate(text.cut(first, ROWS if rows else WINDOW), first)
        ],
        "total": text.total,
        "asked": marked[:3],
        "marked": ",".join(map(str, marked)),
        "hits": hits,
        "at": at,
    }


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if _LINE.fullmatch(text) else None


def _hits(text: LongText, words: str, hit: int | None) -> Hits | None:
    if not words:
        return None
    lines = tuple(islice(text.find(words), MOST_HITS))
    return Hits(words, lines, min(max(hit or 1, 1), max(len(lines), 1)))


def _line(number: int, raw: bytes, marked: bool, found: bool) -> Line:
    # A character may be four bytes, and escapes are no characters; the rest is told in bytes.
    shown = raw[:LONGEST_SHOWN]
    return Line(number, pieces(shown), len(raw) - len(shown), marked, found)


def shortened(text: str) -> str:
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
    rows = session.evidence.select_related("created_by").prefetch_related("assignments")
    found = rows.filter(reader=reader, sha256__startswith=digest).last()
    if found is None or len(digest) < 12:
        raise Http404("No such evidence in this session.")
    return found
