"""Threads beside what they are about, and in a list."""

from typing import Any

from django import template

from webapp.pages.addresses import anchor_address
from webapp.review.threads import Thread, about, threads_read

register = template.Library()
register.filter("anchor_words", about)


def _all_threads(context: template.Context) -> list[Thread]:
    return threads_read(context["session"])


@register.inclusion_tag("decision/_threads.html", takes_context=True)
def threads_at(context: template.Context, kind: str, name: Any) -> dict[str, Any]:
    """The threads about one thing, with a link to the form for another: a page has many such things, and
    a browser looks at each field of a page when it comes, folded or not."""
    return _thread_context(context, f"{kind}:{name}")


@register.inclusion_tag("decision/_threads_about.html", takes_context=True)
def threads_about(context: template.Context, anchor: str) -> dict[str, Any]:
    """The threads about one thing, with the form for another."""
    return _thread_context(context, anchor)


@register.inclusion_tag("decision/_say.html", takes_context=True)
def threads_form(context: template.Context, kind: str, name: Any) -> dict[str, Any]:
    """The form alone, where the threads stand elsewhere on the page."""
    return _thread_context(context, f"{kind}:{name}")


@register.inclusion_tag("decision/_ask_for.html", takes_context=True)
def ask_for(context: template.Context, test: str) -> dict[str, Any]:
    """The threads about a measurement, with a form that asks whoever runs the session for it."""
    return {**_thread_context(context, f"test:{test}"), "test": test, "asked": context["session"].owner}


def _thread_context(context: template.Context, anchor: str) -> dict[str, Any]:
    here = [thread for thread in _all_threads(context) if thread.first.anchor == anchor]
    return {
        "session": context["session"],
        "request": context["request"],
        "csrf_token": context.get("csrf_token"),
        "threads": here,
        "anchor": anchor,
        "spot": anchor.replace(":", "-").replace(".", "-").replace("@", "-"),
    }


@register.simple_tag(takes_context=True)
def open_disputes(context: template.Context) -> list[Thread]:
    return [thread for thread in _all_threads(context) if thread.disputes]


@register.simple_tag(takes_context=True)
def open_threads(context: template.Context) -> list[Thread]:
    """Newest first."""
    return [thread for thread in reversed(_all_threads(context)) if not thread.resolved]


@register.simple_tag(takes_context=True)
def resolved_threads(context: template.Context) -> list[Thread]:
    """Newest first."""
    return [thread for thread in reversed(_all_threads(context)) if thread.resolved]


@register.simple_tag(takes_context=True)
def threads_count(context: template.Context, kind: str, name: Any) -> int:
    anchor = f"{kind}:{name}"
    return sum(not t.resolved for t in _all_threads(context) if t.first.anchor == anchor)


@register.filter
def of_evidence(line: int, name: str) -> str:
    return f"{name}:{line}"


register.simple_tag(anchor_address, name="anchor_url")
