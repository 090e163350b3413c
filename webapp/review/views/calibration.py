"""What became of Peerpath's own predictions, over all sessions."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.compare.calibration import calibrated
from webapp.review.calibration import scored
from webapp.triage.views.shell import acting

SHOWN = 100


@require_safe
def calibration(request: HttpRequest) -> HttpResponse:
    found = scored(acting(request))
    context = {"nav": "decisions", "rows": calibrated(item.score for item in found), "scored": found[:SHOWN]}
    return TemplateResponse(request, "review/calibration.html", context)
