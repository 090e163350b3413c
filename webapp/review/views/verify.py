"""Step 8: the same measurements before and after a change, with “cannot tell” as an answer."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET

from webapp.diagnosis.compare.verification import left_out
from webapp.review.before_after import before_after, outputs
from webapp.review.models import DecisionState
from webapp.review.snapshots import epochs
from webapp.triage.models import DiagnosisSession
from webapp.triage.views.shell import on_session, shell


@require_GET
@on_session
def verify(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?before= and ?after= pick two states; without them the session proposes."""
    asked = (request.GET.get("before", ""), request.GET.get("after", ""))
    result = before_after(session, asked)
    decisions = result.history.decisions
    context = shell(
        session,
        "verify",
        result=result,
        first=result.found[0] if result.found else None,
        left_out=left_out(result.found),
        states=epochs(session, result.history.carried),
        moments=outputs(result.facts),
        open_decisions=[d for d in decisions if d.state == DecisionState.APPLIED],
        proposed=[d for d in decisions if d.state == DecisionState.PROPOSED],
        waiting=[d for d in decisions if d.state == DecisionState.APPROVED],
        facts=result.facts,
    )
    return TemplateResponse(request, "review/verify.html", context)
