"""The raw lines of a claim, highlighted in their context: as a page, in a dialog, or a few rows of a long output."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.framing import clean
from webapp.pages.session_page import context_of, render_page, session_page
from webapp.pages.shell import on_session
from webapp.presenting.ansi import Piece, pieces
from webapp.records import blob_store
from webapp.records.evidence_rows import evidence_named
from webapp.records.long_text import LONGEST_SHOWN, LongText, shortened
from webapp.records.models import DiagnosisSession, Evidence, StoredReading
from webapp.records.redaction import RedactionError, redacted, with_report

# A page shows this many lines from a little above the requested one; scrolling loads ROWS more.
WINDOW, CONTEXT, ROWS = 400, 60, 200
# The search counts matching lines up to this number.
MOST_HITS = 1000
_LINE = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    pieces: tuple[Piece, ...]
    cut: int
    marked: bool
    has_words: bool


@dataclass(frozen=True, slots=True)
class Hits:
    """Lines that contain the words. at: the place of the shown line among them, from 1."""

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
    output = evidence_named(session, name)
    if request.GET.get("download"):
        return _evidence_file(output, raw=request.GET["download"] != "redacted")
    window = _line_window(request, output)
    if request.GET.get("rows"):
        return TemplateResponse(request, "session/_evidence_lines.html", context_of(window))
    if request.headers.get("HX-Request"):
        context = {"session": session, "in_dialog": True, **context_of(window)}
        return TemplateResponse(request, "session/_evidence.html", context)
    own = EvidencePage(
        readings=output.readings.all(),
        assigned=bool(output.assignments.all()),
        errors=shortened(clean(bytes(output.stderr))),
    )
    return render_page(request, "session/evidence.html", session_page(session), window, own)


@dataclass(frozen=True, slots=True)
class Window:
    """Some lines of an output. total: the number of its lines. marks: numbers of at most three marked lines, marked:
    of all, in query form. at: the requested line. problem: the reason why its bytes are missing, "" if they are
    present."""

    evidence: Evidence
    lines: list[Line]
    total: int
    marks: list[int]
    marked: str
    hits: Hits | None
    at: int
    problem: str


@dataclass(frozen=True, slots=True)
class EvidencePage:
    """errors: the program's standard error."""

    readings: Iterable[StoredReading]
    assigned: bool
    errors: str


def _line_window(request: HttpRequest, output: Evidence) -> Window:
    """Lines around the requested ones, or around words, or from a given line on."""
    try:
        return _window_of(request, output, output.text)
    except blob_store.LostError as error:
        return _window_of(request, output, LongText.of(b""), str(error))


def _window_of(request: HttpRequest, output: Evidence, text: LongText, problem: str = "") -> Window:
    marked = [int(n) for n in request.GET.get("line", "").split(",")[:50] if _LINE.fullmatch(n)]
    words, rows = request.GET.get("find", "").strip()[:200], _line_number(request, "rows")
    hits = None if rows else _word_hits(text, words, _line_number(request, "hit"))
    at = _line_number(request, "at") or (hits.line if hits else None) or min(marked, default=1)
    first = rows or max(1, min(at, text.total) - CONTEXT)
    sought = words.encode().lower()
    return Window(
        evidence=output,
        lines=[
            _window_line(
                number,
                raw,
                number in marked or number == _line_number(request, "at"),
                bool(sought) and sought in raw.lower(),
            )
            for number, raw in enumerate(text.cut(first, ROWS if rows else WINDOW), first)
        ],
        total=text.total,
        marks=marked[:3],
        marked=",".join(map(str, marked)),
        hits=hits,
        at=at,
        problem=problem,
    )


def _line_number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if _LINE.fullmatch(text) else None


def _word_hits(text: LongText, words: str, hit: int | None) -> Hits | None:
    if not words:
        return None
    lines = tuple(islice(text.find(words), MOST_HITS))
    return Hits(words, lines, min(max(hit or 1, 1), max(len(lines), 1)))


def _window_line(number: int, raw: bytes, marked: bool, has_words: bool) -> Line:
    # A character may have four bytes, and escapes are not characters, so the rest is counted in bytes.
    start = raw[:LONGEST_SHOWN]
    return Line(number, pieces(start), len(raw) - len(start), marked, has_words)


def _evidence_file(evidence: Evidence, *, raw: bool) -> HttpResponse:
    """The stored bytes, for members; or the redacted text with a list of the redactions at its end."""
    if evidence.purged_at:
        return HttpResponse(
            "Its raw output was purged; the hash and what was read from it are kept.\n",
            status=410,
            content_type="text/plain; charset=utf-8",
        )
    try:
        body = evidence.raw if raw else with_report(redacted(evidence))
    except (RedactionError, blob_store.LostError) as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(body, content_type="text/plain; charset=utf-8")
    name = evidence.reader if raw else f"{evidence.reader}.redacted"
    response["Content-Disposition"] = f'attachment; filename="{name}.txt"'
    return response
