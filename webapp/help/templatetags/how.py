"""Ways into the help: from a page to what explains it, and from one entry to another."""

from __future__ import annotations

import re
from typing import Any

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from webapp.help.pages import GROUPS, PAGES, HelpPage, explained_by

register = template.Library()


@register.simple_tag(takes_context=True)
def how_this_works(context: Any) -> str:
    """The address of what explains the page that is shown; "" where the help says nothing of it."""
    request = context.get("request")
    found = getattr(request, "resolver_match", None)
    return explained_by(found.view_name) if found else ""


@register.simple_tag
def help_url(where: str) -> str:
    """ "words#clique" as an address. Raises KeyError for a page there is none of."""
    slug, _, anchor = where.partition("#")
    return f"{PAGES[slug].url}{'#' if anchor else ''}{anchor}"


@register.simple_tag(takes_context=True)
def help_groups(context: Any) -> list[tuple[str, list[HelpPage]]]:
    """The pages that who asks may read, by group."""
    user = context.get("user")
    known = bool(user and user.is_authenticated)
    found = [(title, [p for p in pages if known or p.open]) for title, pages in GROUPS]
    return [(title, pages) for title, pages in found if pages]


@register.filter
def at_slashes(path: str) -> SafeString:
    """An address that may be broken after a slash, where there is no room for the whole of it."""
    return format_html_join(
        "", "{}<wbr>", ((part,) for part in re.findall(r"[^/]*/?", path) if part)
    )


@register.filter
def in_pieces(usage: str) -> SafeString:
    """A command line that is broken between its arguments, never inside of "[--known-hosts FILE]"."""
    pieces = re.findall(r"\[[^\]]*\]\S*|\S+", usage)
    return format_html_join(" ", '<span class="piece">{}</span>', ((piece,) for piece in pieces))
