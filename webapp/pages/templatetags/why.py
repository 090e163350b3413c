"""Why something is said: the rule behind it, its source and its inputs; and words with their meaning."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

from agents.facts import ReadingKind, all_facts
from webapp.diagnosis.answer.provenance import provenance
from webapp.diagnosis.case import Advice
from webapp.diagnosis.catalogue import all_hypotheses, all_options, listed
from webapp.diagnosis.contradictions import all_rules
from webapp.diagnosis.facts import Facts, Reads
from webapp.diagnosis.naming import by_title
from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.diagnosis.reference.manuals import MANUALS
from webapp.diagnosis.wording import typeset
from webapp.pages.citations import cited
from webapp.pages.templatetags.show import STATES, pill
from webapp.presenting.sentences import sentence

register = template.Library()

# Words as they stand in sentences, by the glossary term that explains them; the longest is tried first.
SAID_AS = {
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


# How an id's parts are written for people; tp8 is TP8.
_NAMES = ("ACS", "BAR", "GPU", "KVM", "NCCL", "NUMA", "NVLink", "P2P", "PCIe", "QEMU", "VM")
WRITTEN = {name.lower(): name for name in (*_NAMES, "TP", "PP", "EP", "DP")}


# Why an input has no value, in words of a sentence.
NO_VALUE = {
    ReadingKind.ABSENT: "looked for and absent",
    ReadingKind.UNSUPPORTED: "cannot be read there",
    ReadingKind.UNREADABLE: "unreadable",
    ReadingKind.NOT_RUN: "not read",
}


@register.filter
def titled(identifiers: str) -> str:
    """ "nccl_log, a_b" as "NCCL log, A/B", "tp4+pp2" as "TP4 + PP2"."""
    text = re.sub(r"\ba_b\b", "A/B", identifiers).replace("_", " ").replace("+", " + ")
    return re.sub(r"[a-z]\w*?(?=\d*\b)", lambda word: WRITTEN.get(word[0], word[0]), text)


@register.filter
def advised(advice: Advice) -> SafeString:
    """The pill of an option's status; what comes after another option says so, where it would say "now"."""
    if not advice.after:
        return pill(advice.status)
    text = '<span class="pill open"><span aria-hidden="true">{}</span> {} after {}</span>'
    return format_html(text, STATES[advice.status][0], advice.status, titled(advice.after))


register.filter("by_title", by_title)


@register.filter
def fact_title(fact_id: str) -> str:
    """What the fact is called; the id of one that today's vocabulary has no more."""
    fact = all_facts().get(fact_id)
    return fact.title if fact else fact_id


register.filter("sentence", sentence)

# Packages of rules: what one is called, and where the help has it; "" where it has none.
_KINDS = {
    "gates": ("gate", "reasoning#gate-"),
    "hypotheses": ("hypothesis", "rules#hypothesis-"),
    "contradictions": ("contradiction", "rules#contradiction-"),
    "options": ("option", "options#"),
    "finding_rules": ("findings", ""),
}


@register.filter
def rule_title(module: str) -> str:
    """ "webapp.diagnosis.gates.fabric" as "gate “fabric”"."""
    package, _, name = module.removeprefix("webapp.diagnosis.").partition(".")
    kind, _ = _KINDS.get(package, (titled(package), ""))
    return f"{kind} “{_rule_titles(package).get(name, titled(name))}”" if name else kind


@register.filter
def rule_help(module: str) -> str:
    """Where the help explains the rule; "" where it has no entry."""
    package, _, name = module.removeprefix("webapp.diagnosis.").partition(".")
    slug, _, anchor = _KINDS.get(package, ("", ""))[1].partition("#")
    return f"{_help(slug)}#{anchor}{name}" if slug else ""


@cache  # a diagnosis has a hundred such links to a handful of pages
def _help(slug: str) -> str:
    return reverse("help:page", args=[slug])


@listed
def _rule_titles(package: str) -> dict[str, str]:
    if package == "hypotheses":
        return {h.id: h.claim.rstrip(".") for h in all_hypotheses()}
    if package == "contradictions":
        return {rule.id: rule.title for rule in all_rules()}
    return {o.id: o.title for o in all_options()} if package == "options" else {}


def _rule(package: str) -> None:
    """A tag "<kind>_rule ID" for the rules of one package of the reasoning."""
    name = "hypothesis" if package == "hypotheses" else package.removesuffix("s")

    def tag(context: Any, rule_id: str) -> dict[str, Any]:
        return why(context, f"{package}.{rule_id}")

    register.inclusion_tag("components/_why.html", takes_context=True, name=f"{name}_rule")(tag)


for _package in ("gates", "hypotheses", "contradictions", "options"):
    _rule(_package)


def why(context: Any, rule: str) -> dict[str, Any]:
    """What the quiet details under an item shows. rule: "gates.driver", "options.iommu_pt" …"""
    found = provenance(rule)
    return {
        "rule": found,
        "said": found.says if found else (),
        "inputs": _inputs(context, context["result"].rests_on(rule)) if found else "",
    }


def _inputs(context: Any, reads: Reads) -> SafeString:
    """The facts that a rule read in this case, each with a link to its first line, and those it looked for."""
    facts: Facts = context["result"].facts
    found = (_input(context, facts, name, used=name in reads.used) for name in sorted(reads.every))
    return format_html_join(" · ", '<span aria-hidden="true">{}</span> {} {}', found)


def _input(context: Any, facts: Facts, name: str, *, used: bool) -> tuple[str, str, str]:
    """A mark, what the fact is called, and its link or why it has no value."""
    fact = all_facts().get(name)
    if fact is None:
        return "◌", name, f"({NO_VALUE[ReadingKind.NOT_RUN]})"
    if absent := NO_VALUE.get(facts.kind(fact)):
        return "◌", fact.title, f"({absent})"
    if not used:
        return "◌", fact.title, "(not of this machine)"
    ref = facts.refs(fact)[0]
    return "✓", fact.title, cited(context, ref.source, (ref.line,)).link


register.filter("typeset", typeset)


@register.simple_tag(takes_context=True)
def terms(context: Any, text: Any) -> SafeString:
    """The text with each glossary term that is new on this page leading to its entry in the help."""
    request = getattr(context, "request", None)
    said = vars(request).setdefault("terms_said", set()) if request else set()
    return with_terms(text, said)


def with_terms(text: Any, said: set[str] | None = None) -> SafeString:
    """The text with the first mention of each glossary term leading to its entry on the help page.

    said: slugs of the terms that were mentioned before; those of this text are added.
    """
    page = _help("words")
    pattern, slugs = _terms()
    seen = set() if said is None else said

    def link(found: re.Match[str]) -> str:
        # Not every letter that matches in any case is the same in lower case (ſ for s).
        slug = slugs.get(found[0].lower(), "")
        if not slug or slug in seen:
            return found[0]
        seen.add(slug)
        return f'<a class="word" href="{page}#{slug}">{found[0]}</a>'

    # What is escaped here cannot hold a term in its entities (&amp; &lt; &quot; &#x27;).
    return mark_safe(pattern.sub(link, str(conditional_escape(text))))  # noqa: S308


@cache
def _terms() -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern of every word, and the slug of each (in lower case)."""
    known = {term.term for term in GLOSSARY}
    words = {word: slugify(term) for term, said in SAID_AS.items() if term in known for word in said}
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
    return mark_safe(_WORKS.sub(_read_there, ticked(text)))  # noqa: S308


def _read_there(found: re.Match[str]) -> str:
    page = MANUALS[found[0]]
    return format_html('<a href="{}" rel="noreferrer noopener">{}</a>', page, found[0])
