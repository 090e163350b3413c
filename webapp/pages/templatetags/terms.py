"""Words with their meaning, and sources with where to read them."""

import re
from functools import cache
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.diagnosis.reference.manuals import MANUALS
from webapp.diagnosis.wording import typeset

register = template.Library()
register.filter("typeset", typeset)

# Words as they stand in sentences, by the glossary term that explains them; the longest is tried first.
FORMS = {
    "Peer-to-peer (P2P)": ("peer-to-peer", "peer access", "P2P"),
    "Clique": ("GPUDirect clique", "clique"),
    "NS, CNS and the other codes": ("NS", "CNS", "GNS", "TNS"),
    "PIX, PXB, PHB, NODE, SYS": ("PIX", "PXB", "PHB"),
    "All-reduce": ("all-reduces", "all-reduce"),
    "Tensor and pipeline parallel (TP, PP)": ("tensor parallel", "TP", "PP"),
    "SHM and NET": ("SHM", "NET"),
    "BAR and MMIO window": ("BARs", "BAR", "MMIO"),
    "IOMMU group": ("IOMMU groups", "IOMMU group"),
    "ACS": ("ACS",),
    "NVLink and NVSwitch": ("NVLink", "NVSwitch"),
    "IOMMU and VFIO": ("VFIO", "IOMMU"),
    "MIG and vGPU": ("MIG", "vGPU"),
    "NUMA node": ("NUMA",),
    "q35 and i440FX": ("q35", "i440FX"),
    "Utilisation": ("utilisation",),
    "Floor": ("floor",),
    "Xid": ("Xid",),
    "NCCL": ("NCCL",),
    "CUDA graph": ("CUDA graphs", "CUDA graph"),
    "KV cache": ("KV-cache", "KV cache"),
    "Draft tokens": ("draft tokens", "drafts"),
    "Mixture of experts (MoE)": ("MoE",),
    "Expert parallel and DP attention (EP, DP)": ("expert parallel", "DP attention"),
    "Staged copy": ("staged copies", "staged copy"),
    "Device-timed and host-synchronised": ("device-timed", "host-synchronised"),
}


@register.simple_tag(takes_context=True)
def terms(context: Any, text: Any) -> SafeString:
    """The text with each glossary term that is new on this page leading to its entry in the help."""
    request = getattr(context, "request", None)
    linked = vars(request).setdefault("terms_linked", set()) if request else set()
    return with_terms(text, linked)


def with_terms(text: Any, linked: set[str] | None = None) -> SafeString:
    """The text with the first mention of each glossary term leading to its entry on the help page.

    linked: slugs of the terms that were mentioned before; those of this text are added.
    """
    page = reverse("help:page", args=["words"])
    pattern, slugs = _term_pattern()
    seen = set() if linked is None else linked

    def link(match: re.Match[str]) -> str:
        # Not every letter that matches in any case is the same in lower case (ſ for s).
        slug = slugs.get(match[0].lower(), "")
        if not slug or slug in seen:
            return match[0]
        seen.add(slug)
        return f'<a class="word" href="{page}#{slug}">{match[0]}</a>'

    # What is escaped here cannot hold a term in its entities (&amp; &lt; &quot; &#x27;).
    return mark_safe(pattern.sub(link, str(conditional_escape(text))))  # noqa: S308


@cache
def _term_pattern() -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern of every word, and the slug of each (in lower case)."""
    known = {term.term for term in GLOSSARY}
    words = {word: slugify(term) for term, forms in FORMS.items() if term in known for word in forms}
    ordered = sorted(words, key=len, reverse=True)
    cased = [re.escape(w) if w.isupper() else f"(?i:{re.escape(w)})" for w in ordered]
    pattern = re.compile(rf"(?<![\w&#-])(?:{'|'.join(cased)})(?![\w-])")
    return pattern, {word.lower(): slug for word, slug in words.items()}


@register.filter
def ticked(text: str) -> SafeString:
    """A docstring's `code` as <code>, and its quotes as those of every other text on a page."""
    escaped = str(conditional_escape(typeset(" ".join(text.split()))))
    return format_html("{}", mark_safe(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escaped)))  # noqa: S308


_WORKS = re.compile(rf"(?<![\w/-])(?:{'|'.join(map(re.escape, sorted(MANUALS, key=len, reverse=True)))})(?![\w/-])")


@register.filter
def sourced(text: str) -> SafeString:
    """A source, with the works that it names as links to where they can be read."""
    return mark_safe(_WORKS.sub(_manual_link, ticked(text)))  # noqa: S308


def _manual_link(match: re.Match[str]) -> str:
    page = MANUALS[match[0]]
    return format_html('<a href="{}" rel="noreferrer noopener">{}</a>', page, match[0])
