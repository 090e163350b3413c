"""The scores of Peerpath's own predictions, over all sessions."""

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.compare.calibration import calibrated
from webapp.pages.shell import acting
from webapp.review.calibration import scored

SHOWN = 100


@require_safe
def calibration(request: HttpRequest) -> HttpResponse:
    predictions = scored(acting(request))
    context = {
        "nav": "decisions",
        "rows": calibrated(item.score for item in predictions),
        "scored": predictions[:SHOWN],
    }
    return TemplateResponse(request, "decision/calibration.html", context)
