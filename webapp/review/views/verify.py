"""Step 8: the same measurements before and after a change, with “cannot tell” as an answer."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET

from webapp.diagnosis.compare.verification import left_out
from webapp.diagnosis.matching import with_vm
from webapp.review.before_after import before_after, outputs
from webapp.review.models import DecisionState
from webapp.review.snapshots import epochs
from webapp.triage.case_facts import facts_of
from webapp.triage.models import DiagnosisSession
from webapp.triage.views.shell import on_session, shell


@require_GET
@on_session
def verify(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?before= and ?after= pick two states; without them the session proposes."""
    asked = (request.GET.get("before", ""), request.GET.get("after", ""))
    result = before_after(session, asked)
    facts = with_vm(facts_of(session), session.vmid)
    context = shell(
        session,
        "verify",
        result=result,
        first=result.found[0] if result.found else None,
        left_out=left_out(result.found),
        states=epochs(session),
        moments=outputs(facts),
        open_decisions=session.decisions.filter(state=DecisionState.APPLIED),
        waiting=session.decisions.filter(state=DecisionState.APPROVED),
    )
    return TemplateResponse(request, "review/verify.html", context)
