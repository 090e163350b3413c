"""What a person may do, as a list of roles names it, and what is new to them."""

from collections.abc import Iterable
from typing import Any

from django import template

from webapp.accounts.models import Role, User
from webapp.records.models import Event

register = template.Library()


@register.filter
def standing(person: User) -> str:
    """The value of their role; "" of somebody who has no way in."""
    if not person.is_active:
        return ""
    return str(Role.ADMINISTRATOR.value) if person.is_staff else person.role


@register.filter
def role_names(roles: Iterable[tuple[str, str]]) -> list[str]:
    """Of (value, label), as a sentence names them."""
    return [str(label).lower() for _, label in roles]


@register.simple_tag(takes_context=True)
def is_new(context: Any, event: Event) -> bool:
    """Whether somebody else did it since the reader last left."""
    last_read = context.get("new_after")
    return last_read is not None and event.number > last_read and event.actor_id != context["session"].asked_by
