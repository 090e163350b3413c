"""What a run's page says of the run that it repeats."""

from __future__ import annotations

from django import template

from agents.facts import ReadingKind
from webapp.diagnosis.compare.repeat import RepeatComparison
from webapp.diagnosis.facts import Sourced
from webapp.presenting.fact_lists import lacking
from webapp.records.models import Run

register = template.Library()

_UNTOLD = {
    ReadingKind.UNSUPPORTED: "the machine could not tell",
    ReadingKind.UNREADABLE: "unreadable",
    ReadingKind.NOT_RUN: "not known",
}


@register.filter
def run_name(run: Run) -> str:
    return f"run {run.number}"


@register.filter
def verdict(found: RepeatComparison) -> str:
    """Whether anything differs, and of how many facts that is said."""
    count = len(found.compared)
    if not count:
        return "No fact was read in both runs, so nothing can be compared."
    facts = f"{count} fact{'' if count == 1 else 's'}"
    partly = len({one.fact_id for one in found.in_part})
    if not found.differences:
        part = f", {partly} of them in part" if partly else ""
        return f"Nothing that was read differs: {facts} {'was' if count == 1 else 'were'} compared{part}."
    differ = len({one.fact_id for one in found.differences})
    part = f"; {partly} could be compared in part only" if partly else ""
    return f"{differ} of {facts} that both runs read {'differs' if differ == 1 else 'differ'}{part}."


@register.filter
def answer_words(item: Sourced | None) -> str:
    """What became of one question in one run, without its value."""
    if item is None:
        return "no answer came"
    reading = item.reading
    if reading.kind is ReadingKind.ABSENT:
        return "read: not there"
    if reading.kind is ReadingKind.KNOWN:
        return "read" if reading.complete else f"read without {lacking(reading.missing)}"
    return f"{_UNTOLD[reading.kind]}: {reading.detail}" if reading.detail else _UNTOLD[reading.kind]
