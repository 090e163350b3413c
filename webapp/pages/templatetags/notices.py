"""The form for what a person wants to hear, on their account's page."""

from typing import Any
from urllib.parse import urlsplit

from django import template
from django.conf import settings

from webapp.notices.kinds import KINDS
from webapp.notices.preferences import chosen_by

register = template.Library()


@register.inclusion_tag("notices/_choices.html", takes_context=True)
def notice_choices(context: template.Context) -> dict[str, Any]:
    user = context["user"]
    chosen = chosen_by(user)
    return {
        "kinds": [(kind, kind.id in chosen) for kind in KINDS.values()],
        "mail_on": settings.MAIL_ON,
        "address": user.email,
        "csrf_token": context.get("csrf_token"),
    }


@register.filter
def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


@register.filter
def kind_words(kind: str) -> str:
    """For programs nobody is “me”; a retired kind still displays."""
    if kind == "mention":
        return "Somebody is named"
    return KINDS[kind].title if kind in KINDS else kind
