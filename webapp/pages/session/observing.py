"""Copies the operating points of a load measurement into the symptom, which the bound uses."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.pages.session.symptom import version_sent
from webapp.pages.shell import acting, on_session
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import EditedMeanwhileError
from webapp.records.workload import NO_USABLE_POINT, observed_points_save


@require_POST
@on_session
def use_observed(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Takes the points of one evidence; points at other concurrencies stay."""
    source = request.POST.get("source", "")
    try:
        points = observed_points_save(session, source, user=acting(request), version=version_sent(request))
    except EditedMeanwhileError as error:
        messages.error(request, f"{error} Look at it, then use the points once more.")
        return redirect("session:path", session.pk)
    if not points:
        messages.error(request, NO_USABLE_POINT)
        return redirect("session:path", session.pk)
    used = ", ".join(str(point["concurrency"]) for point in points)
    messages.success(request, f"Observed now: what was measured at {used} at once.")
    return redirect("session:symptom", session.pk)
