"""Why something is said: the rule behind it, its source, its inputs, and links to what it rests on."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.facts import ReadingKind, all_facts
from webapp.diagnosis.answer.provenance import provenance
from webapp.diagnosis.case import Advice
from webapp.diagnosis.catalogue import all_hypotheses, all_options, listed
from webapp.diagnosis.contradictions import all_rules
from webapp.diagnosis.facts import Facts, Reads, Sourced
from webapp.diagnosis.naming import by_title
from webapp.pages.citations import Cited, cited
from webapp.pages.templatetags.show import pill
from webapp.pages.templatetags.terms import terms
from webapp.pages.templatetags.times import moment
from webapp.presenting.sentences import sentence
from webapp.presenting.states import STATES

register = template.Library()

# How an id's parts are written for people; tp8 is TP8.
_NAMES = ("ACS", "BAR", "GPU", "KVM", "NCCL", "NUMA", "NVLink", "P2P", "PCIe", "QEMU", "VM")
SHOWN_REFS = 3
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
    return f"{_help_address(slug)}#{anchor}{name}" if slug else ""


@cache  # a diagnosis has a hundred such links to a handful of pages
def _help_address(slug: str) -> str:
    return reverse("help:page", args=[slug])


@listed
def _rule_titles(package: str) -> dict[str, str]:
    if package == "hypotheses":
        return {h.id: h.claim.rstrip(".") for h in all_hypotheses()}
    if package == "contradictions":
        return {rule.id: rule.title for rule in all_rules()}
    return {o.id: o.title for o in all_options()} if package == "options" else {}


def _register_rule_tag(package: str) -> None:
    """A tag "<kind>_rule ID" for the rules of one package of the reasoning."""
    name = "hypothesis" if package == "hypotheses" else package.removesuffix("s")

    def tag(context: Any, rule_id: str) -> dict[str, Any]:
        return why(context, f"{package}.{rule_id}")

    register.inclusion_tag("components/_why.html", takes_context=True, name=f"{name}_rule")(tag)


for _package in ("gates", "hypotheses", "contradictions", "options"):
    _register_rule_tag(_package)


def why(context: Any, rule: str) -> dict[str, Any]:
    """What the quiet details under an item shows. rule: "gates.driver", "options.iommu_pt" …"""
    origin = provenance(rule)
    return {
        "rule": origin,
        "said": origin.says if origin else (),
        "inputs": _rule_inputs(context, context["result"].rests_on(rule)) if origin else "",
    }


def _rule_inputs(context: Any, reads: Reads) -> SafeString:
    """The facts that a rule read in this case, each with a link to its first line, and those it looked for."""
    facts: Facts = context["result"].facts
    inputs = (_rule_input(context, facts, name, used=name in reads.used) for name in sorted(reads.every))
    return format_html_join(" · ", '<span aria-hidden="true">{}</span> {} {}', inputs)


def _rule_input(context: Any, facts: Facts, name: str, *, used: bool) -> tuple[str, str, str]:
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
