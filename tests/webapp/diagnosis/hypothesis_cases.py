"""For every hypothesis a case that supports it, one that refutes it and one that leaves it open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agents.facts import Reading
from tests.webapp.diagnosis.building import facts_of
from webapp.diagnosis.case import Bound, Case, Verdict
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.ladder import judge_ladder
from webapp.diagnosis.situation import Situation


def assess(hypothesis_id: str, facts: Facts, *bounds: Bound) -> Verdict:
    hypothesis = next(h for h in all_hypotheses() if h.id == hypothesis_id)
    case = Case(Situation(facts.scope()), judge_ladder(Situation(facts)), bounds)
    return replace(hypothesis.assess(case), reads=case.facts.reads)


def verdict(hypothesis_id: str, *given: Reading[Any] | Bound) -> Verdict:
    bounds = [item for item in given if isinstance(item, Bound)]
    readings = [item for item in given if isinstance(item, Reading)]
    return assess(hypothesis_id, facts_of(*readings), *bounds)
