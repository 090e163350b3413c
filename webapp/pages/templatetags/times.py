"""Times as people say them, with the exact one beneath; how long a run may still take."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.benchmark import all_benchmarks
from webapp.presenting.times import time_ago

register = template.Library()


@register.filter
def ago(when: datetime | None) -> SafeString | str:
    """ "3 min ago", the exact time on hover; a date where it is more than a month. "never" for None."""
    if when is None:
        return "never"
    local = timezone.localtime(when)
    exact = f"{date_format(local, 'j M Y H:i:s')} {local:%Z}"
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), exact, time_ago(local))


@register.filter
def moment(when: datetime) -> SafeString:
    """The exact time, where it is the very thing: in a log or a timeline. How long ago on hover."""
    local = timezone.localtime(when)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        time_ago(local),
        date_format(local, "j M Y H:i:s"),
    )


@register.filter
def minutes(seconds: float) -> str:
    """As an upper limit: rounded up."""
    return f"{math.ceil(seconds / 60)} min"


@register.filter
def clock(when: datetime) -> SafeString:
    """ "14:02:11" beside each line of a console; the whole of it on hover."""
    local = timezone.localtime(when)
    exact = f"{date_format(local, 'j M Y H:i:s')} {local:%Z}"
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), exact, f"{local:%H:%M:%S}")


@register.filter
def progress(run: Any, answers: Sequence[Any]) -> dict[str, Any]:
    """How far a run got: {text, value, most}; without a value where nobody knows.

    Probes are counted. A benchmark says how long it has run and how long it takes on two GPUs, which is no
    promise: it is never shown as a share.
    """
    if run.started_at is None:
        return {"text": "waits"}
    if run.kind == "probes":
        most = len(run.names)
        return {"text": f"{len(answers)} of {most}", "value": len(answers), "most": most}
    seconds = (timezone.now() - run.started_at).total_seconds()
    benchmark = all_benchmarks().get(run.names[0]) if run.names else None
    usual = f" of about {benchmark.duration_s} s on two GPUs" if benchmark else ""
    return {"text": f"{seconds:.0f} s{usual}"}


@register.filter
def took(run: Any) -> str:
    """ "" for a run that never started."""
    if not run.started_at or not run.ended_at:
        return ""
    seconds = (run.ended_at - run.started_at).total_seconds()
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"
