"""Step 8: the same measurements before and after a change; “cannot tell” is a possible answer."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.compare.verification import Verified, left_out
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import on_session
from webapp.records.models import DiagnosisSession
from webapp.review.before_after import BeforeAfter, before_after, outputs
from webapp.review.closing_evidence import proof_of
from webapp.review.models import Decision, DecisionState
from webapp.review.states import Snapshot, epochs


@dataclass(frozen=True, slots=True)
class Refused:
    """The decision's number, and the typed texts."""

    number: int
    typed: str


@dataclass(frozen=True, slots=True)
class VerifyPage:
    """result: the measurements in the two states. left_out: the number of comparisons that tell nothing of the
    change. states, moments: choices of the form. not_taken: a refused closing that has no form any more."""

    result: BeforeAfter
    first: Verified | None
    left_out: int
    states: list[Snapshot]
    moments: list[Snapshot]
    open_decisions: list[Decision]
    not_taken: Refused | None
    proposed: list[Decision]
    waiting: list[Decision]
    proof: dict[str, Any] | None
    refused: Refused | None


@require_safe
@on_session
def verify(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?before= and ?after= name two states; without them the session proposes."""
    states = (request.GET.get("before", ""), request.GET.get("after", ""))
    return verify_page(request, session, before_after(session, states))


def verify_page(
    request: HttpRequest, session: DiagnosisSession, result: BeforeAfter, refused: Refused | None = None
) -> HttpResponse:
    """refused: a refused closing, whose words stay in the form."""
    decisions = result.history.decisions
    open_decisions = [d for d in decisions if d.state == DecisionState.APPLIED]
    lost = refused and refused.number not in {d.number for d in open_decisions}
    own = VerifyPage(
        result=result,
        first=result.comparisons[0] if result.comparisons else None,
        left_out=left_out(result.comparisons),
        states=epochs(session, result.history.carried),
        moments=outputs(result.facts),
        open_decisions=open_decisions,
        not_taken=refused if lost else None,
        proposed=[d for d in decisions if d.state == DecisionState.PROPOSED],
        waiting=[d for d in decisions if d.state == DecisionState.APPROVED],
        proof=proof_of(result, result.decision).as_data() if result.decision else None,
        refused=refused,
    )
    page = session_page(session, "verify", facts=result.facts)
    return render_page(request, "decision/verify.html", page, own, status=422 if refused else 200)
