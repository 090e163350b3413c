"""Several machines that should be alike: added together, probed together, and the odd one out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods, require_POST

from agents.facts import View
from webapp.diagnosis.compare.odd_one_out import Comparison
from webapp.triage import machines
from webapp.triage.credentials import may_connect
from webapp.triage.forms.group import GroupForm
from webapp.triage.models import DiagnosisSession, Run, Target
from webapp.triage.runs import PROBES
from webapp.triage.views.shell import acting, on_session, shell


@require_http_methods(["GET", "HEAD", "POST"])
@on_session
def side_by_side(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?add=1 shows the form that adds machines, and nothing of those there are."""
    user = acting(request)
    if request.method != "POST":
        form = GroupForm(user=user) if request.GET.get("add") else None
        return _page(request, session, form)
    if not may_connect(user):
        raise PermissionDenied("Store a key of yours first, on the page “Keys”.")
    form = GroupForm(request.POST, user=user)
    if form.is_valid():
        known = form.cleaned_data["known_hosts"]
        try:
            added, pinned = machines.group_add(session, user, form.addresses, known, form.values())
        except machines.GroupError as error:
            form.add_error("machines", str(error))
        else:
            messages.success(request, f"{added} machines added, {pinned} with a pinned host key.")
            return redirect("triage:machines", session.pk)
    return _page(request, session, form, 422)


def _page(request: HttpRequest, session: DiagnosisSession, form: GroupForm | None, status: int = 200) -> HttpResponse:
    targets = [] if form else machines.guests(session)
    of_guests = session.runs.filter(target__role=View.GUEST)
    runs = [] if form else list(of_guests.select_related("target").order_by("created_at"))
    comparison = machines.side_by_side(session, targets)
    odd = dict(comparison.odd)
    context = shell(
        session,
        "",
        form=form if form or targets else GroupForm(user=acting(request)),
        adding=form is not None,
        comparison=comparison,
        table=_columns(targets, runs, comparison, odd),
        worth=[row for row in comparison.rows if row.worth_a_look],
        going_on=sum(run.ended_at is None for run in runs),
    )
    return TemplateResponse(request, "triage/machines.html", context, status=status)


def _columns(
    targets: list[Target], runs: Iterable[Run], comparison: Comparison, odd: dict[str, tuple[str, ...]]
) -> list[dict[str, Any]]:
    """One a machine: its last run, whether its key is pinned, and its cells; the oddest first."""
    last = {run.target.machine: run for run in runs if run.kind == PROBES}
    rows = [
        {
            "target": target,
            "run": last.get(target.machine),
            "pinned": target.agent == "local" or target.is_pinned,
            "cells": [row.cells[n] for row in comparison.rows],
            "odd": odd.get(str(target), ()),
        }
        for n, target in enumerate(targets)
    ]
    return sorted(rows, key=lambda row: -len(row["odd"]))


@require_POST
@on_session
def run_on_all(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    started = machines.run_on_all(session, acting(request))
    unknown = sum(t.agent == "ssh" and not t.is_pinned for t in machines.guests(session))
    if started:
        left_out = f"; left out, without an accepted host key: {unknown}" if unknown else ""
        messages.success(request, f"The probes are queued on {len(started)} machines{left_out}.")
    else:
        messages.info(request, "No machine has an accepted host key and nothing at work.")
    return redirect("triage:machines", session.pk)
