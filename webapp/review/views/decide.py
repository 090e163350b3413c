"""Step 7: which changes, and why. And the records themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET, require_http_methods

from webapp.diagnosis.case import Advice, OptionStatus
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.option import Option
from webapp.diagnosis.phases import PHASES
from webapp.review.decisions import DecisionError, decision_record, superseded_pins
from webapp.review.madr import as_markdown
from webapp.review.models import Decision
from webapp.triage.case_facts import facts_of
from webapp.triage.diagnoses import session_diagnosis
from webapp.triage.models import DiagnosisSession
from webapp.triage.redacting import RedactionError, hiding
from webapp.triage.views.shell import acting, on_session, shell


@require_http_methods(["GET", "POST"])
@on_session
def decide(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    result = session_diagnosis(session)
    problem = ""
    if request.method == "POST":
        try:
            decision = decision_record(
                session,
                user=acting(request),
                title=request.POST.get("title", "").strip()[:200],
                chosen=request.POST.getlist("chosen"),
                reason=request.POST.get("reason", ""),
                unsafe_understood="unsafe_understood" in request.POST,
                result=result,
            )
            return redirect("review:decision", session.pk, decision.number)
        except DecisionError as error:
            problem = str(error)
    chosen = request.POST.getlist("chosen")
    context = shell(
        session,
        "decide",
        result=result,
        phases=_phases(result, chosen),
        problem=problem,
        typed=request.POST,
        chosen=chosen,
        decisions=session.decisions.all(),
    )
    return TemplateResponse(request, "review/decide.html", context, status=422 if problem else 200)


Judged = tuple[Option, Advice]
WORTH_CHOOSING = frozenset({OptionStatus.RECOMMENDED, OptionStatus.POSSIBLE})


def _phases(
    result: Diagnosis, chosen: Sequence[str]
) -> list[tuple[str, str, list[Judged], list[Judged]]]:
    """Each phase with the options worth choosing, recommended first, and those that are not."""
    found = []
    for phase, options in groupby(all_options(), key=lambda option: option.phase):
        judged = [(o, result.advice[o.id]) for o in options if o.id in result.advice]
        judged.sort(key=lambda pair: pair[1].status is not OptionStatus.RECOMMENDED)
        worth = [(o, a) for o, a in judged if a.status in WORTH_CHOOSING or o.id in chosen]
        rest = [pair for pair in judged if pair not in worth]
        found.append((phase, PHASES[phase], worth, rest))
    return found


@require_GET
@on_session
def decision(request: HttpRequest, session: DiagnosisSession, number: int) -> HttpResponse:
    found = get_object_or_404(session.decisions.select_related("decided_by"), number=number)
    if request.GET.get("format") == "md":
        return _exported(found, raw=bool(request.GET.get("raw")))
    context = shell(
        session,
        "",
        decision=found,
        chosen=[o for o in found.options if o["id"] in found.chosen],
        others=[o for o in found.options if o["id"] not in found.chosen],
        stale=superseded_pins(found, facts_of(session)),
    )
    return TemplateResponse(request, "review/decision.html", context)


def _exported(decision: Decision, *, raw: bool) -> HttpResponse:
    try:
        text = as_markdown(decision, None if raw else hiding(decision.session))
    except RedactionError as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="decision-{decision.number}.md"'
    return response


@require_GET
def decisions(request: HttpRequest) -> HttpResponse:
    """Every decision of the sessions this person may see, newest first."""
    visible = DiagnosisSession.objects.visible_to(acting(request))
    found = (
        Decision.objects.filter(session__in=visible)
        .select_related("session", "decided_by")
        .order_by("-decided_at")[:200]
    )
    return TemplateResponse(
        request, "review/decisions.html", {"nav": "decisions", "decisions": found}
    )
