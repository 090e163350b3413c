"""What a load on the engine measured becomes what is observed: the points the bound is computed from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from agents.facts.bench import SERVING, ServingRow
from webapp.accounts.models import User
from webapp.triage.case_facts import facts_of
from webapp.triage.forms.workload import MOST_POINTS
from webapp.triage.models import DiagnosisSession
from webapp.triage.sessions import EditedMeanwhileError, session_save
from webapp.triage.views.shell import acting, on_session

NOTHING = "Nothing there can be used: no point without failed requests."


@require_POST
@on_session
def use_observed(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Takes the points of one evidence; what was observed at other concurrencies stays."""
    source = request.POST.get("source", "")
    try:
        points = observed_use(session, source, user=acting(request), version=_version(request))
    except EditedMeanwhileError as error:
        messages.error(request, f"{error} Look at it, then use the points once more.")
        return redirect("triage:path", session.pk)
    if not points:
        messages.error(request, NOTHING)
        return redirect("triage:path", session.pk)
    used = ", ".join(str(point["concurrency"]) for point in points)
    messages.success(request, f"Observed now: what was measured at {used} at once.")
    return redirect("triage:symptom", session.pk)


def observed_use(session: DiagnosisSession, source: str, *, user: User, version: int) -> list[dict[str, Any]]:
    """The points of the evidence of this name, which are observed from now on; none: nothing was changed.
    Raises EditedMeanwhileError."""
    found = (item for item in facts_of(session).all(SERVING) if item.source == source)
    points = points_of(row for item in found for row in item.reading.value or ())
    if points:
        at = {point["concurrency"] for point in points}
        kept = [p for p in session.workload.get("observed", []) if p.get("concurrency") not in at]
        observed = sorted([*points, *kept], key=lambda point: point["concurrency"])[:MOST_POINTS]
        workload = {**session.workload, "observed": observed}
        values = {"workload": workload}
        session_save(session, user=user, version=version, what="symptom", values=values)
    return points


def points_of(rows: Iterable[ServingRow]) -> list[dict[str, Any]]:
    """[[observed]] tables, one a concurrency, a range where it was measured more than once. A point with
    failed requests is left out: its rate is that of another load."""
    rates: dict[int, list[tuple[float, float | None]]] = {}
    for row in rows:
        if row.concurrency and row.output_tokens_per_s and not row.errors:
            found = (row.output_tokens_per_s, row.total_tokens_per_s)
            rates.setdefault(row.concurrency, []).append(found)
    points = []
    for concurrency, pairs in sorted(rates.items()):
        point: dict[str, Any] = {
            "concurrency": concurrency,
            "output_tokens_per_s": _ends([output for output, _ in pairs]),
        }
        totals = [total for _, total in pairs if total]
        points.append(point | ({"total_tokens_per_s": _ends(totals)} if totals else {}))
    return points


def _ends(values: list[float]) -> list[float]:
    return [min(values), max(values)]


def _version(request: HttpRequest) -> int:
    raw = request.POST.get("version", "")
    return int(raw) if re.fullmatch(r"[0-9]{1,9}", raw) else -1
