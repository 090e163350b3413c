"""The ranking of NCCL's settings, drawn."""

from __future__ import annotations

from typing import Any

from django import template

from agents.facts.bench import SweepResult
from webapp.diagnosis.nccl_choice import NcclChoice, choice
from webapp.triage.sweep_figure import SweepFigure, sweep_figure

register = template.Library()


@register.simple_tag(takes_context=True)
def choice_of(context: Any, result: SweepResult) -> NcclChoice:
    """What this sweep says: at the session's sizes where the page knows them, else at its own."""
    known = context.get("sweep")
    return known if isinstance(known, NcclChoice) and known.result is result else choice(result)


@register.filter
def drawn(sweep: NcclChoice) -> SweepFigure:
    return sweep_figure(sweep.compared)


@register.filter
def ratio(value: float) -> str:
    """ "0.82": times as long as without the setting."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
