"""The latest events of a session, as a live fragment."""

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.pages.session_page import activity_of, context_of
from webapp.pages.shell import on_session
from webapp.records.models import DiagnosisSession
from webapp.records.presence import people_of


@require_safe
@on_session
def activity(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """204 when nothing is new since `seen`."""
    newest = activity_of(session, people_of(session))
    if request.GET.get("seen") == newest.seen_activity:
        return HttpResponse(status=204)
    return TemplateResponse(request, "session/_events.html", {"session": session, **context_of(newest)})
