"""What the pages about before and after show."""

from collections.abc import Iterable
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.compare.comparability import Comparability, Item, Standing
from webapp.diagnosis.compare.conditions import Side
from webapp.diagnosis.compare.effects import MARGIN, Comparison, Outcome
from webapp.diagnosis.compare.verification import Verified
from webapp.diagnosis.reference.p2p_relevance import Bears

register = template.Library()


def option_title(option_id: str) -> str:
    """Its id where it is none of today's."""
    return next((o.title for o in all_options() if o.id == option_id), option_id)


@register.filter
def option_titles(option_ids: Iterable[str]) -> list[str]:
    return [option_title(option_id) for option_id in option_ids]


@register.filter
def outputs_named(names: list[str]) -> list[EvidenceRef]:
    """To be shown as evidence: each output from its first line."""
    return [EvidenceRef(name, 1) for name in names]


@register.filter
def speed(us: float) -> str:
    """µs per output token as tokens a second."""
    return f"{1e6 / us:.1f}" if us else "–"


BEARS = {
    Bears.YES: ("can matter", "!", "open"),
    Bears.TIME: ("speed only", "○", "accent"),
    Bears.NO: ("cannot matter", "–", "unk"),
    Bears.UNKNOWN: ("not known", "◌", "unk"),
}


@register.filter
def bears_pill(bears: Bears) -> SafeString:
    word, icon, colour = BEARS[bears]
    return format_html('<span class="pill {}"><span aria-hidden="true">{}</span> {}</span>', colour, icon, word)


@register.filter
def some_names(names: tuple[str, ...]) -> str:
    """The first and the last of many, with their number."""
    if len(names) < 4:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} … {names[-1]} ({len(names)})"


@register.filter
def part_text(text: str | None) -> str:
    return "not there" if text is None else text if len(text) <= 300 else f"{text[:299]}…"


LEADS = {
    Outcome.IMPROVED: "It got faster",
    Outcome.WORSE: "It got slower",
    Outcome.EQUIVALENT: "No change",
    Outcome.CANNOT_TELL: "Cannot tell",
}


@register.filter
def headline(item: Verified) -> str:
    """What may be said of one measurement, in one or two sentences."""
    comparison = item.compared
    text = f"{LEADS[comparison.outcome]}: {comparison.why}."
    return f"{text} {comparison.excluded.capitalize()}." if comparison.excluded else text


@register.filter
def more_runs(comparison: Comparison) -> str:
    """What would have shown, and how many runs would show more."""
    detectable = ""
    if comparison.detectable is not None:
        detectable = f"A change of {comparison.detectable * 100:.1f} % would have shown at half of what was compared."
    if comparison.outcome is not Outcome.CANNOT_TELL or not comparison.comparable:
        return detectable
    if comparison.runs_needed is None:
        reason = "no state was measured twice" if comparison.spread is None else "runs of one state differ much"
        return f"{detectable} How many runs would tell is not known: {reason}; five of each are a start.".strip()
    more = [max(0, comparison.runs_needed - runs) for runs in comparison.runs]
    if not any(more):
        return detectable
    return (
        f"{detectable} {comparison.runs_needed} runs of each state would show a change of {MARGIN * 100:.0f} %: "
        f"{more[0]} more before and {more[1]} more after."
    ).strip()


STANDINGS = {
    "same": ("same", "=", "ok"),
    "intended": ("as intended", "✓", "accent"),
    "unintended": ("not intended", "≠", "open"),
}


@register.filter
def standing_pill(standing: str) -> SafeString:
    word, icon, colour = STANDINGS[standing]
    return format_html('<span class="pill {}"><span aria-hidden="true">{}</span> {}</span>', colour, icon, word)


@register.filter
def gate_value(value: str | float | None) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return part_text(value)


@register.filter
def gate_change(item: Item) -> str:
    """Of a command line only the words that came or went."""
    if not item.title.endswith("command line"):
        return f"{gate_value(item.before)} → {gate_value(item.after)}"
    was, now = str(item.before).split(), str(item.after).split()
    gone = [f"− {word}" for word in was if word not in now]
    return ", ".join([*gone, *(f"+ {word}" for word in now if word not in was)])


@register.filter
def fullest(side: Side) -> Any:
    """The result with the most rows, to be drawn."""
    return max(side.values, key=lambda value: len(value.rows))


@register.filter
def changed_items(gate: Comparability) -> list[Item]:
    return [*gate.of(Standing.UNINTENDED), *gate.of(Standing.INTENDED)]


@register.filter
def same_items(gate: Comparability) -> list[Item]:
    return list(gate.of(Standing.SAME))


@register.filter
def unknown_items(gate: Comparability) -> list[str]:
    return [item.title for item in gate.of(Standing.UNKNOWN)]
