"""What a console shows: output in its colours, and readings a line each."""

from collections.abc import Iterable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from webapp.presenting.ansi import Piece
from webapp.records.models import Evidence, StoredReading

register = template.Library()
_INKS = {"known": "g", "unreadable": "r"}


@register.filter
def in_colours(pieces: Iterable[Piece]) -> SafeString:
    return format_html_join("", "{}", ((_in_colour(piece),) for piece in pieces))


def _in_colour(piece: Piece) -> str:
    return format_html('<span class="{}">{}</span>', piece.classes, piece.text) if piece.classes else piece.text


@register.filter
def each_reading(evidence: Iterable[Evidence]) -> list[tuple[Evidence, StoredReading]]:
    """Every reading with the output it came from; they are prefetched."""
    return [(output, reading) for output in evidence for reading in output.readings.all()]


@register.filter
def ink(kind: str) -> str:
    """The class of its colour: green, red or yellow."""
    return _INKS.get(kind, "y")
