"""Every act on a session: to read, to filter, to take away."""

from __future__ import annotations

import json

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET

from webapp.triage.audit import broken, exported, filtered
from webapp.triage.models import DiagnosisSession
from webapp.triage.views.shell import on_session, shell

PER_PAGE = 100


@require_GET
@on_session
def audit(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?kind= and ?actor= narrow; ?format=jsonl takes all of it away."""
    if request.GET.get("format") == "jsonl":
        return _download(session)
    kind, actor = request.GET.get("kind", "")[:60], request.GET.get("actor", "")[:150]
    found = filtered(session, kind=kind, actor=actor)
    names = session.events.exclude(actor_name="").values_list("actor_name", flat=True)
    context = shell(
        session,
        "",
        log=Paginator(found, PER_PAGE).get_page(request.GET.get("page")),
        kind=kind,
        actor=actor,
        kinds=sorted(set(session.events.values_list("kind", flat=True))),
        actors=sorted(set(names)),
        broken=broken(session),
    )
    return TemplateResponse(request, "triage/audit.html", context)


def _download(session: DiagnosisSession) -> HttpResponse:
    lines = (json.dumps(row, sort_keys=True) + "\n" for row in exported(session))
    response = HttpResponse(lines, content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="events-{session.pk}.jsonl"'
    return response
