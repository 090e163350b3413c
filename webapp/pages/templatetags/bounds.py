"""How a bound is shown: what it gains at most, how each part is known, and which input is missing."""

from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.diagnosis import naming, wording
from webapp.diagnosis.case import Bound
from webapp.diagnosis.claim import Range
from webapp.records.models import DiagnosisSession

register = template.Library()
_PARTS = {
    "step_ms": "the step",
    "floor_ms": "weight reads (floor)",
    "comm_ms": "communication",
    "unexplained_ms": "what is unexplained",
    "profiled_ms": "the profile’s parts",
    "max_gain_remove_comm": "the gain without any communication",
    "max_gain_p2p": "the gain with peer-to-peer",
}


@register.filter
def most(gain: Range) -> str:
    return wording.most(gain)


@register.filter
def load(bound: Bound | None) -> str:
    """Which load a figure is for, "" where none was observed."""
    return wording.load(bound) if bound else ""


@register.filter
def bases(bound: Bound) -> list[tuple[str, str]]:
    """(part, how it is known) of each quantity that there is."""
    return [(_PARTS.get(part, part), bound.known(part)) for part in bound.basis]


@register.filter
def named(identifier: str) -> str:
    return naming.in_words(identifier)


@register.simple_tag(takes_context=True)
def missing(context: Any, text: str) -> SafeString | str:
    """In the form's words, leading to the field where one of the first step is meant."""
    session, words = context.get("session"), naming.in_words(text)
    if not isinstance(session, DiagnosisSession) or words == text:
        return words
    field = naming.field_of(text)
    url = reverse("session:symptom", args=[session.pk]) + (f"#id_{field}" if field else "")
    return format_html('<a href="{}">{}</a>', url, words)
