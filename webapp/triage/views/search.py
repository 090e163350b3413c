"""Everything a person may see that has these words: sessions, findings, evidence, decisions."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from webapp.triage.models import Entry
from webapp.triage.search import matching
from webapp.triage.views.shell import acting

SHOWN = 20
# In the order of the page, with the names of its parts.
KINDS = {
    "session": "Sessions",
    "finding": "Findings",
    "decision": "Decisions",
    "evidence": "Evidence",
}


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """?q= words, ?kind= only one kind, ?before= the id of the last one seen."""
    q, kind = request.GET.get("q", "").strip()[:200], request.GET.get("kind", "")
    kinds = {kind: KINDS[kind]} if kind in KINDS else KINDS
    groups = [{"title": title, **_found(request, q, name)} for name, title in kinds.items()]
    context = {
        "nav": "search",
        "q": q,
        "all": urlencode({"q": q}),
        "kind": kind if kind in KINDS else "",
        "groups": [group for group in groups if group["rows"]] if q else [],
    }
    return TemplateResponse(request, "triage/search.html", context)


def _found(request: HttpRequest, q: str, kind: str) -> dict[str, object]:
    """The newest with these words, and the query that leads to older ones."""
    entries = Entry.objects.visible_to(acting(request)).filter(kind=kind)
    before = request.GET.get("before", "")
    if before.isdecimal() and len(before) < 19:
        entries = entries.filter(pk__lt=int(before))
    found = matching(entries, q).select_related("session__owner").order_by("-id")
    rows = list(found.defer("words", "session__workload")[: SHOWN + 1])
    more = {"q": q, "kind": kind, "before": rows[SHOWN - 1].pk} if len(rows) > SHOWN else {}
    return {"rows": [(row, address(row)) for row in rows[:SHOWN]], "more": urlencode(more)}


def address(entry: Entry) -> str:
    """Where it can be read."""
    if entry.kind == "finding":
        return reverse("triage:diagnosis", args=[entry.session_id]) + f"#finding-{entry.ref}"
    if entry.kind == "evidence":
        return reverse("triage:evidence", args=[entry.session_id, entry.ref])
    if entry.kind == "decision":
        return reverse("review:decision", args=[entry.session_id, entry.ref])
    return reverse("triage:session", args=[entry.session_id])
