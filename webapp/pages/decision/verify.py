"""Step 8: the same measurements before and after a change, with “cannot tell” as an answer."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.compare.verification import left_out
from webapp.pages.shell import on_session, shell
from webapp.records.models import DiagnosisSession
from webapp.review.before_after import BeforeAfter, before_after, outputs
from webapp.review.closing_evidence import proof_of
from webapp.review.models import DecisionState
from webapp.review.states import epochs


@dataclass(frozen=True, slots=True)
class Refused:
    """The decision's number, and what was typed."""

    number: int
    typed: str


@require_safe
@on_session
def verify(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?before= and ?after= pick two states; without them the session proposes."""
    asked = (request.GET.get("before", ""), request.GET.get("after", ""))
    return verify_page(request, session, before_after(session, asked))


def verify_page(
    request: HttpRequest, session: DiagnosisSession, result: BeforeAfter, refused: Refused | None = None
) -> HttpResponse:
    """refused: a closing that was not taken; its words stay in the form."""
    decisions = result.history.decisions
    open_decisions = [d for d in decisions if d.state == DecisionState.APPLIED]
    lost = refused and refused.number not in {d.number for d in open_decisions}
    context = shell(
        session,
        "verify",
        result=result,
        first=result.found[0] if result.found else None,
        left_out=left_out(result.found),
        states=epochs(session, result.history.carried),
        moments=outputs(result.facts),
        open_decisions=open_decisions,
        not_taken=refused if lost else None,
        proposed=[d for d in decisions if d.state == DecisionState.PROPOSED],
        waiting=[d for d in decisions if d.state == DecisionState.APPROVED],
        facts=result.facts,
        proof=proof_of(result, result.decision).as_data() if result.decision else None,
        refused=refused,
    )
    status = 422 if refused else 200
    return TemplateResponse(request, "decision/verify.html", context, status=status)
