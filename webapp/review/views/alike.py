"""What was seen before: a fragment of the diagnosis page, asked for after it; a page without JavaScript."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.catalogue import all_hypotheses
from webapp.review.memory import seen_before
from webapp.triage.diagnoses import session_diagnosis
from webapp.triage.models import DiagnosisSession
from webapp.triage.views.shell import acting, on_session


@require_safe
@on_session
def alike(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    found = seen_before(session, acting(request), session_diagnosis(session))
    claims = {h.id: h.claim for h in all_hypotheses()}
    claim = claims.get(found.verdict, "") if found else ""
    context = {"nav": "sessions", "session": session, "memory": found, "claim": claim}
    template = "_seen_before" if request.headers.get("HX-Request") else "alike"
    return TemplateResponse(request, f"review/{template}.html", context)
