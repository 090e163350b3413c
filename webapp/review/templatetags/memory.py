"""What was seen before, on the diagnosis page."""

from __future__ import annotations

from typing import Any, cast

from django import template

from webapp.accounts.models import User
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.review.memory import seen_before

register = template.Library()


@register.inclusion_tag("review/_seen_before.html", takes_context=True)
def alike(context: template.Context) -> dict[str, Any]:
    """Of the page's session and its diagnosis."""
    user = cast(User, context["user"])
    found = seen_before(context["session"], user, context["result"])
    claims = {h.id: h.claim for h in all_hypotheses()}
    return {"memory": found, "claim": claims.get(found.verdict, "") if found else ""}
