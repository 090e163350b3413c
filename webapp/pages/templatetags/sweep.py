"""The ranking of NCCL's settings."""

from __future__ import annotations

from typing import Any

from django import template

from agents.facts.bench import SweepResult
from webapp.diagnosis.prediction.nccl_choice import NcclChoice, choice
from webapp.presenting.sweep_table import SweepTable, sweep_table
from webapp.records.case_facts import facts_of

register = template.Library()


@register.simple_tag(takes_context=True)
def choice_of(context: Any, result: SweepResult) -> NcclChoice:
    """What this sweep says: at the session's sizes, in its step."""
    session = context.get("session")
    return choice(result, facts_of(session) if session else None)


@register.filter
def ranking(sweep: NcclChoice) -> SweepTable:
    return sweep_table(sweep.compared)


@register.filter
def ratio(value: float) -> str:
    """ "0.82": times as long as without the setting."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
