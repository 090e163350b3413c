"""Beside the diagnosis page: the bound under other inputs, and the page to print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import Section, for_an_engineer
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation.vm import with_vm
from webapp.pages.shell import on_session, shell
from webapp.presenting.figures import ladder_rows, time_bar
from webapp.presenting.what_if import outcome, sliders
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.evidence_rows import evidence_of
from webapp.records.models import DiagnosisSession


@dataclass(frozen=True, slots=True)
class Source:
    """An output the printed page cites: its name by content, what it is called, when it was got last, and
    whether that was before the last change."""

    name: str
    label: str
    origin: str
    at: Any
    older: bool


@require_safe
@on_session
def what_if(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """The bound under the sliders' values: a fragment for htmx, else a page of its own."""
    stored = facts_of(session)
    context = what_if_context(with_vm(stored, session.vmid), request.GET.dict())
    if request.headers.get("HX-Request"):
        return TemplateResponse(request, "session/_what_if.html", context)
    page = shell(session, "diagnosis", facts=stored, **context)
    return TemplateResponse(request, "session/what_if.html", page)


def what_if_context(facts: Facts, asked: Mapping[str, str]) -> dict[str, Any]:
    chosen = sliders(facts, asked)
    found = outcome(facts, chosen)
    return {"sliders": chosen, "outcome": found, "what_if_bar": time_bar(found.bound)}


@require_safe
@on_session
def summary(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """A paragraph for a manager and a page for an engineer, from the same diagnosis."""
    result = session_diagnosis(session)
    sections = for_an_engineer(result)
    context = shell(
        session,
        "",
        result=result,
        paragraph=for_a_manager(result),
        sections=sections,
        bars=[(bound, time_bar(bound)) for bound in result.bounds],
        ladder=ladder_rows(result.ladder),
    )
    context["sources"] = _sources(session, sections, context["labels"], context["older"])
    return TemplateResponse(request, "session/summary.html", context)


def _sources(
    session: DiagnosisSession, sections: Iterable[Section], labels: Mapping[str, str], older: Mapping[str, Any]
) -> list[Source]:
    """What the page's claims cite, in the order it came in; the same bytes once, as they came last."""
    cited = {ref.source for section in sections for claim in section.claims for ref in claim.evidence}
    newest = {e.name: e for e in evidence_of(session) if e.name in cited and not e.set_aside_at}
    return [
        Source(name, labels.get(name, ""), e.origin, e.created_at, name in older)
        for name, e in sorted(newest.items(), key=lambda item: item[1].pk)
    ]
