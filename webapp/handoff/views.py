"""The collector script as a download, for a machine that nobody here can reach."""

from __future__ import annotations

import secrets

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from agents.collector import build_script
from agents.facts import View
from agents.probes import all_probes, probes_for
from webapp.triage.intake import missing_probes
from webapp.triage.models import DiagnosisSession, Event
from webapp.triage.views.shell import acting, on_session


@require_GET
@on_session
def script(request: HttpRequest, session: DiagnosisSession, role: str) -> HttpResponse:
    """The read-only script of one role; with `missing`, only what the session has no answer to."""
    if role not in {View.GUEST, View.HOST}:
        raise Http404
    view = View(role)
    probes = probes_for(view)
    if request.GET.get("missing"):
        wanted = missing_probes(session, view)
        probes = tuple(p for name, p in all_probes().items() if name in wanted) or probes
    text = build_script(probes, role=view, nonce=secrets.token_hex(8))
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    if not request.GET.get("show"):
        response["Content-Disposition"] = f'attachment; filename="peerpath-{role}.sh"'
        Event.record(session, "script_downloaded", acting(request), role=role)
    return response
