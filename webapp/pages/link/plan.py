"""The plan: what each phase would do, cost and risk, and its scripts to read and to hand over."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.scripts import clique_instructions
from webapp.handoff.models import Download, HandedScript
from webapp.handoff.plan import phases, sections, shared_problem
from webapp.handoff.scripts import handed
from webapp.pages.link.download import download
from webapp.pages.shell import acting, on_session, shell
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession

SHOWN = 100  # downloads


@require_safe
@on_session
def plan(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    found = session_diagnosis(session)
    shown = sections(found, session.vmid)
    context = shell(
        session,
        "",
        sections=shown,
        shared=shared_problem(shown),
        declined=session.links.exclude(declined_at=None),
        by_hand=clique_instructions(found),
        facts=found.facts,
        result=found,
        with_answer=True,
        kept=_handed_out(session),
    )
    return TemplateResponse(request, "link/plan.html", context)


def _handed_out(session: DiagnosisSession) -> list[tuple[HandedScript, list[Download]]]:
    """Each script that somebody took, the last one first, with who took it."""
    taken = Download.objects.filter(script__session=session).select_related("by", "script__link")
    found: dict[int, tuple[HandedScript, list[Download]]] = {}
    for one in taken.defer("script__text")[:SHOWN]:
        _, downloads = found.setdefault(one.script_id, (one.script, []))
        downloads.append(one)
    return list(found.values())


@require_safe
@on_session
def phase_file(request: HttpRequest, session: DiagnosisSession, phase: str, role: str, act: str) -> HttpResponse:
    """A phase's script for one machine as made now, kept as handed; the plan says why there is none."""
    found = phases(session_diagnosis(session), session.vmid)
    scripts = {(one.id, one.role.value, made.do.value): made for one in found for made in one.scripts}
    made = scripts.get((phase, role, act))
    if made is None:
        return redirect("link:plan", session.pk)
    return download(request, handed(session, None, made), by=acting(request))


@require_safe
@on_session
def kept_file(request: HttpRequest, session: DiagnosisSession, sha256: str) -> HttpResponse:
    """A script as it was handed out, whatever would be made today."""
    script = HandedScript.objects.filter(session=session, sha256=sha256).first()
    if script is None:
        raise Http404
    return download(request, script, by=acting(request))
