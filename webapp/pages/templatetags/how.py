"""Ways into the help: from a page to what explains it, and from one entry to another."""

import re
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

from agents.probes import all_probes
from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.pages.help.pages import GROUPS, PAGES, HelpPage, explained_by

register = template.Library()
_SLUGS = {entry.term: slugify(entry.term) for entry in GLOSSARY}


@register.simple_tag(takes_context=True)
def how_this_works(context: Any) -> str:
    """The address of what explains the page that is shown; "" where the help says nothing of it."""
    request = context.get("request")
    match = getattr(request, "resolver_match", None)
    return explained_by(match.view_name) if match else ""


@register.simple_tag
def help_url(where: str) -> str:
    """ "words#clique" as an address. Raises KeyError for a page there is none of."""
    slug, _, anchor = where.partition("#")
    return f"{PAGES[slug].url}{'#' if anchor else ''}{anchor}"


@register.simple_tag
def word(term: str, wording: str = "") -> SafeString:
    """A term of the glossary, as the sentence says it, that tells what it means. Raises KeyError for one
    that is not there."""
    slug = _SLUGS[term]
    return format_html('<a class="word" href="{}#{}">{}</a>', PAGES["words"].url, slug, wording or term.lower())


@register.simple_tag(takes_context=True)
def help_groups(context: Any) -> list[tuple[str, list[HelpPage]]]:
    """The pages that who asks may read, by group."""
    user = context.get("user")
    known = bool(user and user.is_authenticated)
    groups = [(title, [p for p in pages if known or p.open]) for title, pages in GROUPS]
    return [(title, pages) for title, pages in groups if pages]


_PROBE = re.compile(r"\b(?:guest|host)\.[a-z][a-z0-9_]*")


@register.filter
def with_probes(text: SafeString) -> SafeString:
    """Ids of probes in it as their titles, leading to their entries on the page of all of them."""

    def link(match: re.Match[str]) -> str:
        probe = all_probes().get(match[0])
        return format_html('<a href="#{}">“{}”</a>', probe.id, probe.title) if probe else match[0]

    return mark_safe(_PROBE.sub(link, text))  # noqa: S308


@register.filter
def at_slashes(path: str) -> SafeString:
    """An address that may be broken after a slash, where there is no room for the whole of it."""
    return _broken_after("/", path)


def _broken_after(sign: str, text: str) -> SafeString:
    parts = re.findall(rf"[^{sign}]*{sign}?", text)
    return format_html_join("", "{}<wbr>", ((part,) for part in parts if part))


@register.filter
def in_pieces(usage: str) -> SafeString:
    """A command line that is broken between its arguments, never inside of "[--known-hosts FILE]"
    while there is room; words to choose from are broken after a comma."""
    pieces = re.findall(r"\[[^\]]*\]\S*|\S+", usage)
    broken = ((_broken_after(",", piece),) for piece in pieces)
    return format_html_join(" ", '<span class="piece">{}</span>', broken)
