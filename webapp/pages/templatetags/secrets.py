"""Kinds of what is hidden, for people."""

import re

from django import template

register = template.Library()
_SHORT = re.compile(r"\b(ip|mac|uuid)\b")


@register.filter
def kind_of_secret(kind: str) -> str:
    """ "ip_address" -> "IP address"."""
    return _SHORT.sub(lambda match: match[0].upper(), kind.replace("_", " "))
