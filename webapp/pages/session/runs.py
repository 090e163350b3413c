"""Pages that start, watch and cancel runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_POST, require_safe

from agents.benchmark import all_benchmarks
from webapp.pages.session_page import context_of, render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.models import DiagnosisSession, Evidence, OutputChunk, Run, Target
from webapp.records.models.run import BENCHMARK
from webapp.runs.benchmark_options import arguments_of
from webapp.runs.lifecycle import queue_benchmark, queue_probes, queue_repeat, request_cancel, wait_reason
from webapp.runs.results import Live, live


@require_POST
@on_session
def start(request: HttpRequest, session: DiagnosisSession, target_id: int) -> HttpResponse:
    target = get_object_or_404(session.targets, pk=target_id)
    benchmark = request.POST.get("benchmark", "")
    try:
        if again := request.POST.get("again", ""):
            run = _queue_again(request, session, target, again)
            benchmark = run.names[0] if run.kind == BENCHMARK else ""
        elif benchmark:
            run = _queue_measurement(request, session, target, benchmark)
        else:
            arguments = {"nccl_log": path} if (path := request.POST.get("nccl_log", "").strip()) else None
            run = queue_probes(session, target, acting(request), arguments=arguments)
    except (ValueError, PermissionDenied) as error:
        messages.error(request, str(error))
        return redirect("session:path" if benchmark else f"session:{target.role}", session.pk)
    back = "path" if benchmark else target.role
    return redirect(f"/sessions/{session.pk}/{back}#run-{run.number}")


def _queue_again(request: HttpRequest, session: DiagnosisSession, target: Target, number: str) -> Run:
    """Repeats an earlier run of this machine, named by its number. Raises ValueError."""
    before = get_object_or_404(session.runs, target=target, number=int(number[:9]) if number.isdecimal() else 0)
    if before.kind == BENCHMARK and not request.POST.get("yes"):
        raise ValueError(NEEDS_YES)
    return queue_repeat(before, acting(request))


NEEDS_YES = "It loads the machine: tick that it may, then start it."


def _queue_measurement(request: HttpRequest, session: DiagnosisSession, target: Target, name: str) -> Run:
    """Raises ValueError without a person's yes, and for invalid arguments."""
    benchmark = all_benchmarks().get(name)
    arguments = arguments_of(benchmark, request.POST.dict()) if benchmark else {}
    if python := request.POST.get("interpreter", "").strip():
        arguments["INTERPRETER"] = python
    if not request.POST.get("yes"):
        raise ValueError(NEEDS_YES)
    return queue_benchmark(session, target, acting(request), name, arguments)


@require_safe
@on_session
def watch(request: HttpRequest, session: DiagnosisSession, run_id: UUID) -> HttpResponse:
    """The live fragment of a run; 204 when nothing is new since `seen`. A request without htmx, or with `whole`,
    gets the whole page.

    At the run's end the answer tells the page to load the facts again."""
    if not request.headers.get("HX-Request") or "whole" in request.GET:
        return _page(request, session, run_id)
    run = get_object_or_404(_runs_with_sizes(session), pk=run_id)
    other = wait_reason(run)
    if request.GET.get("seen") == seen_of(run, other):
        return HttpResponse(status=204)
    response = _run_fragment(request, session, shown_run(run, other))
    if run.ended and request.GET.get("seen"):
        response["HX-Trigger"] = "run-ended"
    return response


def _page(request: HttpRequest, session: DiagnosisSession, run_id: UUID) -> HttpResponse:
    run = get_object_or_404(_runs_with_sizes(session), pk=run_id)
    return render_page(request, "session/run.html", session_page(session), shown_run(run, wait_reason(run)))


def _run_fragment(request: HttpRequest, session: DiagnosisSession, run_view: ShownRun) -> HttpResponse:
    return TemplateResponse(request, "session/_run.html", {"session": session, **context_of(run_view)})


@require_safe
@on_session
def numbered(request: HttpRequest, session: DiagnosisSession, run_number: int) -> HttpResponse:
    """Redirects to a run by its number, which people and threads use."""
    run = get_object_or_404(session.runs.only("pk"), number=run_number)
    return redirect("session:run", session.pk, run.pk)


def _runs_with_sizes(session: DiagnosisSession) -> QuerySet[Run]:
    """Runs with the number of their answers and output pieces."""
    return session.runs.select_related("target", "created_by").annotate(
        answers=_row_count(Evidence), pieces=_row_count(OutputChunk)
    )


def _row_count(model: type[Model]) -> Any:
    """A subquery over the index of one run's rows."""
    rows = model._default_manager.filter(run=OuterRef("pk")).order_by().values("run")
    return Coalesce(Subquery(rows.annotate(count=Count("pk")).values("count")), 0)


def seen_of(run: Run, other: str) -> str:
    """Changes whenever the fragment would. run: from `_runs_with_sizes`; other: the reason of its wait."""
    columns = vars(run)
    counts = f"{columns['answers']}-{columns['pieces']}"
    return f"{run.state}-{counts}-{bool(run.cancel_requested_at)}-{other}"


@dataclass(frozen=True, slots=True)
class ShownRun:
    """seen: changes whenever the fragment would. expected: the number of outputs at the end. so_far: the output so
    far. waiting: the reason of its wait, "" for none."""

    run: Run
    evidence: Sequence[Evidence]
    seen: str
    expected: int
    so_far: Live | None
    waiting: str


def shown_run(run: Run, other: str) -> ShownRun:
    """run: from `_runs_with_sizes`; other: the reason of its wait."""
    rows = run.evidence.defer("body", "stderr").prefetch_related("readings")
    return ShownRun(
        run=run,
        evidence=list(rows) if vars(run)["answers"] else [],
        seen=seen_of(run, other),
        expected=len(run.names),
        so_far=live(run, vars(run)["pieces"], vars(run)["answers"]),
        waiting=other,
    )


@require_POST
@on_session
def cancel(request: HttpRequest, session: DiagnosisSession, run_id: UUID) -> HttpResponse:
    run = get_object_or_404(session.runs.select_related("target"), pk=run_id)
    if not request_cancel(run, acting(request)):
        messages.info(request, f"Run {run.number} had already ended.")
    run = get_object_or_404(_runs_with_sizes(session), pk=run_id)
    if request.headers.get("HX-Request"):
        return _run_fragment(request, session, shown_run(run, wait_reason(run)))
    return redirect(f"session:{'path' if run.kind == 'benchmark' else run.target.role}", session.pk)
