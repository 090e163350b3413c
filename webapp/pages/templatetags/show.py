"""How values are shown: ranges, numbers, states, events."""

import json
from collections.abc import Iterable
from typing import Any

from django import forms, template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.diagnosis import wording
from webapp.pages import styles
from webapp.presenting.event_words import event_text
from webapp.presenting.measured_figures import size_text
from webapp.presenting.states import icon_and_colour, state_word
from webapp.presenting.summaries import reading_words, summary

register = template.Library()
register.filter("event_text", event_text)
register.filter("word", state_word)
register.filter("in_words", summary)
register.filter("reading_words", reading_words)
register.filter("bytes", size_text)
register.simple_tag(styles.address, name="styles_url")


@register.filter
def with_article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"


@register.filter
def words(text: str) -> list[str]:
    return text.split()


@register.filter
def pill(state: Any) -> SafeString:
    """Word, icon and colour: never colour alone."""
    name = str(state)
    icon, colour = icon_and_colour(name)
    return format_html(
        '<span class="pill {}"><span aria-hidden="true">{}</span> {}</span>', colour, icon, state_word(name)
    )


@register.filter
def span(value: Any, unit: str = "") -> str:
    """A range as every sentence has it: "2.1–30.0 ms"; "–" when there is none."""
    if value is None:
        return "–"
    if unit == "×":  # gains have the same digits wherever they stand
        return wording.factor(value)
    return f"{wording.span(value)} {unit}".strip()


@register.filter
def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=str)


@register.filter
def get(mapping: Any, key: Any) -> Any:
    return mapping.get(key)


@register.filter
def fields_of(form: forms.Form, table: str) -> Iterable[forms.BoundField]:
    return [form[name] for name in form.fields if name.startswith(f"{table}__")]


@register.filter
def figure(value: float | None, digits: int) -> str:
    """ "–" where it was not measured."""
    return "–" if value is None else f"{value:,.{digits}f}"


@register.filter
def any_of(rows: Iterable[Any], name: str) -> bool:
    """Whether one of them has this figure."""
    return any(getattr(row, name) is not None for row in rows)


@register.filter
def spaced(text: Any) -> str:
    return str(text).replace("_", " ")


@register.filter
def state_words(state: Any) -> str:
    icon, _ = icon_and_colour(str(state))
    return f"{icon} {state_word(state)}"


@register.filter
def matrix_rows(matrix: Any) -> list[tuple[str, Any]]:
    return list(zip(matrix.gpus, matrix.codes, strict=True))


@register.filter
def percent(share: float, digits: int = 0) -> str:
    """Of 0…1, as all texts have it: "5 %"."""
    return f"{share * 100:.{digits}f} %"
