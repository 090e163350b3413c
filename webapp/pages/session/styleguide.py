"""Every component once, alive: what a page is built of."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.facts.bench import COPY
from webapp.diagnosis.situation.topology import draw
from webapp.diagnosis.situation.vm import with_vm
from webapp.pages.next_step import Next, Standing
from webapp.pages.session.stuck import for_administrators
from webapp.presenting.pair_map import pair_map
from webapp.presenting.states import STATES
from webapp.presenting.topology_figure import figure
from webapp.presenting.topology_outline import outline
from webapp.runs.samples import sample_facts

COLOURS = ("bg", "card", "ink", "dim", "line", "accent", "ok", "bad", "open", "unk", "floor", "comm", "term", "mark")

STANDING = Standing(
    "Where a session stands, in one plain sentence.",
    "What is known, how sure, and what is not known yet.",
    (("what was read", True), ("what was not asked yet", False)),
    Next("The next act", "an operator", "#main", "2 min, no restart"),
)


@require_safe
@for_administrators
def styleguide(request: HttpRequest) -> HttpResponse:
    facts = sample_facts("kpro6@host")
    topology = draw(with_vm(facts, None))
    context = {
        "nav": "styleguide",
        "states": STATES,
        "colours": COLOURS,
        "standing": STANDING,
        "figure": figure(topology),
        "trees": outline(topology),
        "copies": facts.value(COPY),
        "map": pair_map(facts),
    }
    return TemplateResponse(request, "session/styleguide.html", context)
