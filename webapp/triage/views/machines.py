"""Several machines that should be alike: added together, probed together, and the odd one out."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods, require_POST

from webapp.diagnosis.compare.odd_one_out import Comparison
from webapp.triage import machines
from webapp.triage.credentials import may_connect
from webapp.triage.forms.group import GroupForm
from webapp.triage.models import DiagnosisSession, Run, Target
from webapp.triage.views.shell import acting, on_session, shell


@require_http_methods(["GET", "POST"])
@on_session
def side_by_side(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    user = acting(request)
    if request.method == "GET":
        return _page(request, session, GroupForm(user=user))
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


def _page(
    request: HttpRequest, session: DiagnosisSession, form: GroupForm, status: int = 200
) -> HttpResponse:
    targets = machines.guests(session)
    comparison = machines.side_by_side(session, targets)
    odd = dict(comparison.odd)
    context = shell(
        session,
        "",
        form=form,
        comparison=comparison,
        table=_columns(session, targets, comparison, odd),
        worth=[row for row in comparison.rows if row.worth_a_look],
        going_on=session.runs.filter(ended_at=None, target__in=targets).count(),
        may_connect=may_connect(acting(request)),
    )
    return TemplateResponse(request, "triage/machines.html", context, status=status)


def _columns(
    session: DiagnosisSession,
    targets: list[Target],
    comparison: Comparison,
    odd: dict[str, tuple[str, ...]],
) -> list[dict[str, Any]]:
    """One a machine: its last run, whether its key is pinned, and its cells; the oddest first."""
    last: dict[int, Run] = {}
    for run in session.runs.filter(kind="probes", target__in=targets).order_by("created_at"):
        last[run.target_id] = run
    keys = set(session.host_keys.values_list("host", "port"))
    rows = [
        {
            "target": target,
            "run": last.get(target.pk),
            "pinned": target.agent == "local" or (target.host, target.port) in keys,
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
    if started:
        messages.success(request, f"The probes are queued on {len(started)} machines.")
    else:
        messages.info(request, "No machine has an accepted host key and nothing at work.")
    return redirect("triage:machines", session.pk)
