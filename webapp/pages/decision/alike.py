"""Earlier sessions that are like this one."""

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.catalogue import all_hypotheses
from webapp.pages.shell import acting, on_session
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.review.similar_sessions import seen_before


@require_safe
@on_session
def alike(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    memory = seen_before(session, acting(request), session_diagnosis(session))
    claims = {h.id: h.claim for h in all_hypotheses()}
    claim = claims.get(memory.verdict, "") if memory else ""
    context = {"nav": "sessions", "session": session, "memory": memory, "claim": claim}
    return TemplateResponse(request, "decision/alike.html", context)
