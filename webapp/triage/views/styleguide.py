"""Every component once, alive: what a page is built of."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET

from webapp.triage.templatetags.show import STATES
from webapp.triage.views.stuck import for_administrators

COLOURS = (
    "bg",
    "card",
    "ink",
    "dim",
    "line",
    "accent",
    "ok",
    "bad",
    "open",
    "unk",
    "floor",
    "comm",
    "term",
    "mark",
)


@require_GET
@for_administrators
def styleguide(request: HttpRequest) -> HttpResponse:
    context = {"nav": "styleguide", "states": STATES, "colours": COLOURS}
    return TemplateResponse(request, "triage/styleguide.html", context)
