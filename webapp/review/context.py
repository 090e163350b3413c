"""What the bar above every page says of what waits."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from webapp.review.waiting import count_for
from webapp.triage.views.shell import acting


def waiting(request: HttpRequest) -> dict[str, Any]:
    """waits_for_me: asked only by a page that shows it; with how often the person was named."""
    if not request.user.is_authenticated:
        return {"waits_for_me": 0}
    user = acting(request)
    return {"waits_for_me": SimpleLazyObject(lambda: count_for(user) + user.unseen_mentions)}
