"""An A/B of one option on one measurement: the plan, the next run, and what the runs say so far."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from agents.benchmark import Benchmark, all_benchmarks
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.option import Option
from webapp.diagnosis.situation.vm import with_vm
from webapp.pages.session.start import uploads_sent
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, Target
from webapp.review.models import DecisionState
from webapp.review.trials import (
    MEASURED_BY,
    Progress,
    Setup,
    choices,
    line_for,
    progress,
    proposed_for,
    setup_of,
    started,
    step_asked,
    step_start,
    take_step,
    waits_for_approval,
)
from webapp.runs.manual_run import ByHand

OVER = (
    *(DecisionState.REJECTED, DecisionState.SUPERSEDED, DecisionState.VERIFIED),
    *(DecisionState.NO_EFFECT, DecisionState.NOT_VERIFIED, DecisionState.REVERTED),
)


@dataclass(frozen=True, slots=True)
class TrialPage:
    """typed: values of the plan's form. line: the command that measures the next step by hand. options: grouped by
    today's advice. proposed: the record that asks for this trial and waits for an approval. trials: begun trials
    with their addresses."""

    setup: Setup | None
    problem: str
    typed: dict[str, str]
    so_far: Progress | None
    line: ByHand | None
    options: list[tuple[str, list[Option]]]
    proposed: int | None
    benchmarks: list[Benchmark]
    unapproved: bool
    result: Diagnosis
    targets: Iterable[Target]
    trials: list[tuple[Setup, str]]


@require_http_methods(["GET", "HEAD", "POST"])
@on_session
def trial_page(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?option=, ?benchmark=, ?runs= and ?set= name the trial; POST starts the next run."""
    stored = facts_of(session)
    result = session_diagnosis(session, stored)
    facts = with_vm(stored, session.vmid)
    setup, problem = None, ""
    if request.GET.get("option"):
        try:
            setup = setup_of(request.GET.dict())
        except ValueError as error:
            problem = str(error)
    if request.method == "POST" and setup:
        if "give" in request.POST:
            _assign_result(request, session, setup, facts)
        else:
            _start_step(request, session, setup, facts)
        return redirect(address(session, setup))
    so_far = progress(session, setup, facts) if setup else None
    unapproved = setup is not None and waits_for_approval(session, setup)
    own = TrialPage(
        setup=setup,
        problem=problem,
        typed={"option": _proposed_option(session), **request.GET.dict()},
        so_far=so_far,
        line=line_for(setup, so_far.next, facts) if setup and so_far and so_far.next else None,
        options=_by_worth(result),
        proposed=proposed_for(session, setup.option) if unapproved and setup else None,
        benchmarks=[all_benchmarks()[name] for name in MEASURED_BY],
        unapproved=unapproved,
        result=result,
        targets=session.targets.filter(role="guest"),
        trials=[(s, address(session, s)) for s in started(session)],
    )
    page = session_page(session, "verify", result=result)
    return render_page(request, "decision/ab.html", page, own, status=422 if problem else 200)


def address(session: DiagnosisSession, setup: Setup) -> str:
    query = {"option": setup.option.id, "benchmark": setup.benchmark.id, "runs": setup.runs}
    return f"{reverse('decision:ab', args=[session.pk])}?{urlencode({**query, 'set': setup.sets})}"


def _proposed_option(session: DiagnosisSession) -> str:
    """The first option of the newest open records that a trial can test; "" without one."""
    rows = session.decisions.exclude(state__in=OVER).order_by("-number")
    chosen_names = [name for chosen in rows.values_list("chosen", flat=True) for name in chosen]
    can = {option.id for option in choices()}
    return next((name for name in chosen_names if name in can), "")


def _by_worth(result: Diagnosis) -> list[tuple[str, list[Option]]]:
    """Recommended options first, then possible ones, then the others by their status."""
    groups: dict[str, list[Option]] = {"recommended": [], "possible": []}
    for option in choices():
        advice = result.advice.get(option.id)
        status = str(advice.status) if advice else "possible"
        groups.setdefault(status, []).append(option)
    return [(status.replace("_", " "), options) for status, options in groups.items() if options]


def _assign_result(request: HttpRequest, session: DiagnosisSession, setup: Setup, facts: Facts) -> None:
    """Takes a person's own measurement for the step that the page showed."""
    so_far = progress(session, setup, facts)
    try:
        step = step_asked(session, setup, so_far, request.POST.get("step", ""))
        if uploads := uploads_sent(request):
            take_step(session, setup, step, uploads, acting(request))
    except ValueError as error:
        messages.error(request, str(error))


def _start_step(request: HttpRequest, session: DiagnosisSession, setup: Setup, facts: Facts) -> None:
    """Starts the step that the page showed, unless another one is next by now."""
    key = request.POST.get("target", "")
    target = get_object_or_404(session.targets, pk=int(key) if key.isdecimal() else 0)
    try:
        step_start(
            session,
            setup,
            facts,
            number=request.POST.get("step", ""),
            target=target,
            user=acting(request),
            yes=bool(request.POST.get("yes")),
        )
    except (ValueError, PermissionDenied) as error:
        messages.error(request, str(error))
