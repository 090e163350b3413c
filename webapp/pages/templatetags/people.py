"""What a person may do, as a list of roles names it."""

from collections.abc import Iterable

from django import template

from webapp.accounts.models import Role, User

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
