"""The page to print, beside the diagnosis page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import Section, for_an_engineer
from webapp.diagnosis.case import Bound, Gate, Path
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import on_session
from webapp.presenting.figures import Segment, ladder_rows, time_bar
from webapp.records.diagnoses import session_diagnosis
from webapp.records.evidence_rows import evidence_of
from webapp.records.models import DiagnosisSession


@dataclass(frozen=True, slots=True)
class Source:
    """An output that the printed page cites: its name by content, its label, its latest time, and whether that time
    is before the last change."""

    name: str
    label: str
    origin: str
    at: Any
    older: bool


@dataclass(frozen=True, slots=True)
class SummaryPage:
    """bars: each bound with its bar. sources: the cited outputs."""

    result: Diagnosis
    paragraph: str
    sections: tuple[Section, ...]
    bars: list[tuple[Bound, tuple[Segment, ...]]]
    ladder: list[tuple[Path, list[Gate]]]
    sources: list[Source]


@require_safe
@on_session
def summary(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """A paragraph for a manager and a page for an engineer, from the same diagnosis."""
    result = session_diagnosis(session)
    sections = for_an_engineer(result)
    page = session_page(session)
    own = SummaryPage(
        result=result,
        paragraph=for_a_manager(result),
        sections=sections,
        bars=[(bound, time_bar(bound)) for bound in result.bounds],
        ladder=ladder_rows(result.ladder),
        sources=_cited_sources(session, sections, page.labels, page.older),
    )
    return render_page(request, "session/summary.html", page, own)


def _cited_sources(
    session: DiagnosisSession, sections: Iterable[Section], labels: Mapping[str, str], older: Mapping[str, Any]
) -> list[Source]:
    """The cited outputs in the order of their arrival; equal bytes once, at their last arrival."""
    cited = {ref.source for section in sections for claim in section.claims for ref in claim.evidence}
    newest = {e.name: e for e in evidence_of(session) if e.name in cited and not e.set_aside_at}
    return [
        Source(name, labels.get(name, ""), e.origin, e.created_at, name in older)
        for name, e in sorted(newest.items(), key=lambda item: item[1].pk)
    ]
