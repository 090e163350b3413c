"""What a person can say of an evidence's lines: where they could not be placed, or could be either's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import template

from agents.facts import View
from agents.framing import clean
from agents.raw_reading import title_of
from webapp.pages.forms.assignment import reader_choices
from webapp.records.blob_store import LostError
from webapp.records.evidence_rows import QUOTED_BYTES
from webapp.records.models import Evidence

register = template.Library()
# An unknown log may leave hundreds of ranges; each has a form with every reader in it.
SHOWN = 12


@dataclass(frozen=True, slots=True)
class Question:
    """Lines taken as `view`'s, read as these titles; `other`: whose they may be."""

    first: int
    last: int
    view: str
    other: str
    titles: str


@register.inclusion_tag("session/_placing.html", takes_context=True)
def placing(context: Any, evidence: Evidence, sentence: str = "") -> dict[str, Any]:
    unplaced = evidence.unplaced
    return {
        "session": context["session"],
        "evidence": evidence,
        "sentence": sentence,
        "unplaced": _quoted_spans(evidence, unplaced[:SHOWN]),
        "more": max(0, len(unplaced) - SHOWN),
        "questions": [_role_question(*doubt) for doubt in evidence.doubts],
        "said": _assigned_spans(evidence),
        "choices": reader_choices() if unplaced else (),
        "csrf_token": context.get("csrf_token"),
    }


@register.filter
def lines_to(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}–{last}"


def _quoted_spans(evidence: Evidence, spans: Sequence[Sequence[int]]) -> list[tuple[int, int, str]]:
    """Each range with the beginning of its first line; of an output of megabytes only the numbers."""
    raw = _quotable_bytes(evidence) if spans else b""
    if not raw:
        return [(first, last, "") for first, last in spans]
    lines = clean(raw).split("\n")
    return [(first, last, lines[first - 1].strip()[:80]) for first, last in spans]


def _quotable_bytes(evidence: Evidence) -> bytes:
    """b"" of what was purged, of megabytes, and while the storage of evidence is away."""
    if evidence.purged_at or evidence.size_bytes > QUOTED_BYTES:
        return b""
    try:
        return bytes(vars(evidence).get("quoted") or evidence.raw)
    except LostError:
        return b""


def _role_question(first: int, last: int, view: str, readers: list[str]) -> Question:
    other = View.HOST if view == View.GUEST else View.GUEST
    return Question(first, last, view, other.value, ", ".join(map(title_of, readers)))


def _assigned_spans(evidence: Evidence) -> list[tuple[int, int, str]]:
    """What counts of what people said: lines, and what they are read as."""
    newest = {(row.first, row.last): row for row in evidence.assignments.all()}
    return [
        (first, last, f"“{title_of(row.reader)}”" if row.reader else f"the {row.view}’s")
        for (first, last), row in newest.items()
        if row.reader or row.view
    ]
