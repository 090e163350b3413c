"""The collector script as a download, for a machine that Peerpath cannot reach."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from agents.facts import View
from agents.probes import handed_for
from webapp.handoff.scripts import collector_for
from webapp.handoff.submissions import still_missing
from webapp.pages.link.download import download
from webapp.pages.shell import acting, on_session
from webapp.records.models import DiagnosisSession


@require_safe
@on_session
def script(request: HttpRequest, session: DiagnosisSession, role: str) -> HttpResponse:
    """The read-only script of one role; with `missing`, only the probes without an answer in the session."""
    if role not in {View.GUEST, View.HOST}:
        raise Http404
    view = View(role)
    probes = handed_for(view)
    if request.GET.get("missing"):
        probes = still_missing(session, view) or probes
    made = collector_for(session, view, probes)
    return download(request, made, by=acting(request))
