"""The feed of what people and runs did."""

from typing import Any

from django import template

from webapp.records.models import Event

register = template.Library()


@register.simple_tag(takes_context=True)
def is_new(context: Any, event: Event) -> bool:
    """Whether somebody else did it since the reader last left."""
    last_read = context.get("new_after")
    return last_read is not None and event.number > last_read and event.actor_id != context["session"].asked_by
