"""Every act on a session: the page reads, filters and exports the log."""

import json
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import on_session
from webapp.records.event_log import broken, exported, filtered
from webapp.records.models import DiagnosisSession, Event

PER_PAGE = 100
# The page checks a chain up to this length at once; a longer one takes seconds and needs ?check=1.
CHECKED_UNASKED = 1000


@dataclass(frozen=True, slots=True)
class AuditPage:
    """log: a page of events. kinds, actors: choices of the filter. broken: the place where the chain of hashes
    breaks, "" if it is whole or unchecked."""

    log: Page[Event]
    kind: str
    actor: str
    kinds: list[str]
    actors: list[str]
    checked: bool
    broken: str


@require_safe
@on_session
def audit(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?kind= and ?actor= narrow; ?check=1 checks a long chain; ?format=jsonl exports the whole log."""
    if request.GET.get("format") == "jsonl":
        return _events_file(session)
    kind, actor = request.GET.get("kind", "")[:60], request.GET.get("actor", "")[:150]
    rows = session.events.order_by().values_list("kind", "actor_name")
    counts = {(k, name): count for k, name, count in rows.annotate(count=Count("pk"))}
    fits = [n for (k, name), n in counts.items() if kind in ("", k) and actor in ("", name)]
    checked = sum(counts.values()) <= CHECKED_UNASKED or bool(request.GET.get("check"))
    log = Paginator(filtered(session, kind=kind, actor=actor), PER_PAGE)
    vars(log)["count"] = sum(fits)  # or it counts once more
    own = AuditPage(
        log=log.get_page(request.GET.get("page")),
        kind=kind,
        actor=actor,
        kinds=sorted({kind for kind, _ in counts}),
        actors=sorted({name for _, name in counts if name}),
        checked=checked,
        broken=broken(session) if checked else "",
    )
    return render_page(request, "session/audit.html", session_page(session), own)


def _events_file(session: DiagnosisSession) -> HttpResponse:
    lines = (json.dumps(row, sort_keys=True) + "\n" for row in exported(session))
    response = HttpResponse(lines, content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="events-{session.pk}.jsonl"'
    return response
