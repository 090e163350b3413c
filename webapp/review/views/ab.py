"""An A/B of one option on one measurement: the plan, the next run, and what the runs say so far."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from agents.benchmark import all_benchmarks
from webapp.diagnosis.compare.schedule import Arm
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.matching import with_vm
from webapp.review.trials import (
    MEASURED_BY,
    Setup,
    arguments_for,
    choices,
    progress,
    setup_of,
    started,
    waits_for_approval,
)
from webapp.triage.case_facts import facts_of
from webapp.triage.models import DiagnosisSession
from webapp.triage.runs import queue_benchmark
from webapp.triage.views.shell import acting, on_session, shell


@require_http_methods(["GET", "POST"])
@on_session
def trial_page(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?option=, ?benchmark=, ?runs= and ?set= say what is tried; POST starts the next run."""
    stored = facts_of(session)
    facts = with_vm(stored, session.vmid)
    setup, problem = None, ""
    if request.GET.get("option"):
        try:
            setup = setup_of(request.GET.dict())
        except ValueError as error:
            problem = str(error)
    if request.method == "POST" and setup:
        _start(request, session, setup, facts)
        return redirect(address(session, setup))
    context = shell(
        session,
        "verify",
        setup=setup,
        problem=problem,
        typed=request.GET.dict(),
        so_far=progress(session, setup, facts) if setup else None,
        options=choices(),
        benchmarks=[all_benchmarks()[name] for name in MEASURED_BY],
        unapproved=setup is not None and waits_for_approval(session, setup),
        targets=session.targets.filter(role="guest"),
        trials=[(s, address(session, s)) for s in started(session)],
        facts=stored,
    )
    return TemplateResponse(request, "review/ab.html", context, status=422 if problem else 200)


def address(session: DiagnosisSession, setup: Setup) -> str:
    query = {"option": setup.option.id, "benchmark": setup.benchmark.id, "runs": setup.runs}
    asked = urlencode({**query, "set": setup.sets})
    return f"{reverse('review:ab', args=[session.pk])}?{asked}"


def _start(request: HttpRequest, session: DiagnosisSession, setup: Setup, facts: Facts) -> None:
    """The step that the page showed, unless another one is next by now."""
    key = request.POST.get("target", "")
    target = get_object_or_404(session.targets, pk=int(key) if key.isdecimal() else 0)
    so_far = progress(session, setup, facts)
    step = so_far.next
    if step is None or str(step.number) != request.POST.get("step"):
        messages.error(request, "Another step is next by now; look again.")
        return
    running = so_far.runs.get(step.number)
    if running and not running.ended:
        messages.error(request, f"Step {step.number} is being measured by run {running.number}.")
        return
    if step.arm is Arm.B and waits_for_approval(session, setup):
        messages.error(
            request, f"{setup.option.title}: a decision for it has to be approved first."
        )
        return
    if not request.POST.get("yes"):
        messages.error(request, "Tick that the arm is in place and that the machine may be loaded.")
        return
    try:
        arguments = arguments_for(setup, step, facts)
        queue_benchmark(session, target, acting(request), setup.benchmark.id, arguments)
    except (ValueError, PermissionDenied) as error:
        messages.error(request, str(error))
