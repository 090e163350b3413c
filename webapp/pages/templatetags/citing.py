"""Claims and readings with links to what they rest on."""

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from webapp.diagnosis.facts import Sourced
from webapp.pages.citations import Cited, cited
from webapp.pages.templatetags.terms import terms
from webapp.pages.templatetags.times import moment
from webapp.presenting.sentences import sentence

register = template.Library()

SHOWN_REFS = 3


@register.simple_tag(takes_context=True)
def claim(context: Any, claim: Any) -> SafeString:
    """Its sentence, what it rests on, and how that is known."""
    return format_html(
        '{} {} <span class="basis">{}</span>',
        terms(context, sentence(claim.text)),
        refs(context, claim.evidence),
        claim.known or claim.basis,
    )


@register.simple_tag(takes_context=True)
def refs(context: Any, evidence: Any) -> SafeString:
    """Links to at most three outputs, each to the first of the lines meant in it."""
    lines: dict[str, set[int]] = {}
    for ref in evidence:
        lines.setdefault(ref.source, set()).add(ref.line)
    return _citation_links([cited(context, source, tuple(sorted(at))) for source, at in lines.items()])


@register.simple_tag(takes_context=True)
def read_from(context: Any, item: Sourced) -> SafeString:
    """A link to the output of a reading, and to its lines where it rests on some."""
    return _citation_links([cited(context, item.source, tuple(sorted(set(item.reading.lines))))])


def _citation_links(citations: Sequence[Cited]) -> SafeString:
    links = format_html_join("", "{} {}", ((c.link, _age_mark(c)) for c in citations[:SHOWN_REFS]))
    if more := len(citations) - len(citations[:SHOWN_REFS]):
        return links + format_html('<span class="basis">and {} more</span>', more)
    return links


def _age_mark(item: Cited) -> SafeString:
    if not item.older:
        return SafeString("")
    return format_html('<span class="basis">older, {}</span> ', moment(item.older))
