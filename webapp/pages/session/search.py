"""Searches all entries that a person may see: sessions, findings, runs, decisions and the others."""

from collections.abc import Collection
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.pages.addresses import entry_address
from webapp.pages.search_hits import details
from webapp.pages.shell import acting
from webapp.records.models import Entry
from webapp.records.search import LOOKED, newest

SHOWN = 20
# In the order of the page, with the headings of its parts.
KINDS = {
    "session": "Sessions",
    "finding": "Findings",
    "decision": "Decisions",
    "comment": "Discussion",
    "run": "Runs",
    "evidence": "Evidence",
}


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """?q= words, ?kind= only one kind, ?before= the id of the last row of the page before."""
    q, kind = request.GET.get("q", "").strip()[:200], request.GET.get("kind", "")
    kinds = {kind: KINDS[kind]} if kind in KINDS else KINDS
    entries, cut = _newest_by_kind(request, q, kinds)
    groups = [{"title": t, **_kind_group(q, name, entries[name], cut)} for name, t in kinds.items()]
    context = {
        "nav": "search",
        "q": q,
        "all": urlencode({"q": q}),
        "kind": kind if kind in KINDS else "",
        "cut": cut,
        "groups": [group for group in groups if group["rows"] or group["more"]],
    }
    return TemplateResponse(request, "session/search.html", context)


def _newest_by_kind(request: HttpRequest, q: str, kinds: Collection[str]) -> tuple[dict[str, list[Entry]], bool]:
    """Matching entries by kind, one more than the page shows; and whether the search stopped at its limit."""
    entries = Entry.objects.visible_to(acting(request)).filter(kind__in=kinds)
    before = request.GET.get("before", "")
    if before.isdecimal() and len(before) < 19:
        entries = entries.filter(pk__lt=int(before))
    matches = newest(entries, q).values_list("pk", "kind")
    keys: dict[str, list[int]] = {kind: [] for kind in kinds}
    looked = list(matches[: LOOKED + 1])
    for key, kind in looked[:LOOKED]:
        keys[kind].append(key)
    visible_keys = [key for of_kind in keys.values() for key in of_kind[: SHOWN + 1]]
    rows = Entry.objects.filter(pk__in=visible_keys).select_related("session__owner").order_by("-id")
    by_kind: dict[str, list[Entry]] = {kind: [] for kind in kinds}
    for row in rows.defer("words", "session__workload"):
        by_kind[row.kind].append(row)
    return by_kind, len(looked) > LOOKED


def _kind_group(q: str, kind: str, rows: list[Entry], cut: bool) -> dict[str, Any]:
    """The shown rows of a kind, and the query for older ones."""
    visible_rows = rows[:SHOWN]
    more = {"q": q, "kind": kind} if cut or len(rows) > SHOWN else {}
    if more and visible_rows:
        more["before"] = str(visible_rows[-1].pk)
    about = details(kind, visible_rows, q)
    detailed_rows = [(row, entry_address(row), about.get(row.pk)) for row in visible_rows]
    return {"rows": detailed_rows, "more": urlencode(more)}
