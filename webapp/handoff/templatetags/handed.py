"""How sentences about scripts are shown, and what is odd about where an output comes from."""

from __future__ import annotations

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from webapp.handoff.scripts import marks_of
from webapp.triage.models import Evidence

register = template.Library()
_CODE = re.compile(r"`([^`]+)`")


@register.filter
def code(text: str) -> SafeString:
    """What stands in backticks is code; everything is escaped before that is looked at."""
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(text)))  # noqa: S308


@register.filter
def marks(evidence: Evidence) -> list[str]:
    return marks_of(evidence)
