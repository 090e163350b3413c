"""The plan: effect, cost and risk of each phase, with its scripts to read and to hand over."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.scripts import clique_instructions
from webapp.handoff.models import Download, HandedScript, Link
from webapp.handoff.plan import Section, phases, sections, shared_problem
from webapp.handoff.scripts import handed
from webapp.pages.link.download import download as download_answer
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession

SHOWN = 100  # downloads


@dataclass(frozen=True, slots=True)
class PlanPage:
    """shared: the input that every section lacks, "" for nothing. declined: links whose person declined. by_hand:
    steps of the host's admin without a script. handed_out: scripts with the persons who downloaded them."""

    sections: tuple[Section, ...]
    shared: str
    declined: Iterable[Link]
    by_hand: Any
    result: Diagnosis
    handed_out: list[tuple[HandedScript, list[Download]]]


@require_safe
@on_session
def plan(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    result = session_diagnosis(session)
    parts = sections(result, session.vmid)
    own = PlanPage(
        sections=parts,
        shared=shared_problem(parts),
        declined=session.links.exclude(declined_at=None),
        by_hand=clique_instructions(result),
        result=result,
        handed_out=_handed_out(session),
    )
    page = session_page(session, result=result, with_answer=True)
    return render_page(request, "link/plan.html", page, own)


def _handed_out(session: DiagnosisSession) -> list[tuple[HandedScript, list[Download]]]:
    """Each downloaded script, the last one first, with the persons who downloaded it."""
    newest = Download.objects.filter(script__session=session).select_related("by", "script__link")
    by_script: dict[int, tuple[HandedScript, list[Download]]] = {}
    for download in newest.defer("script__text")[:SHOWN]:
        _, downloads = by_script.setdefault(download.script_id, (download.script, []))
        downloads.append(download)
    return list(by_script.values())


@require_safe
@on_session
def phase_file(request: HttpRequest, session: DiagnosisSession, phase: str, role: str, act: str) -> HttpResponse:
    """A new script of a phase for one machine, stored as handed out; the plan gives the reason if there is none."""
    plan_phases = phases(session_diagnosis(session), session.vmid)
    scripts = {(one.id, one.role.value, script.do.value): script for one in plan_phases for script in one.scripts}
    script = scripts.get((phase, role, act))
    if script is None:
        return redirect("link:plan", session.pk)
    return download_answer(request, handed(session, None, script), by=acting(request))


@require_safe
@on_session
def kept_file(request: HttpRequest, session: DiagnosisSession, sha256: str) -> HttpResponse:
    """A script with the text that was handed out, even if a new one would differ."""
    script = HandedScript.objects.filter(session=session, sha256=sha256).first()
    if script is None:
        raise Http404
    return download_answer(request, script, by=acting(request))
