"""Whatever is known together: nothing raises, and nothing is claimed without evidence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import Reading, all_facts
from tests.webapp.diagnosis import test_contradictions, test_hypotheses_machine
from tests.webapp.diagnosis.building import sourced
from tests.webapp.diagnosis.test_hypotheses_time import SEEN
from webapp.diagnosis import corrections
from webapp.diagnosis.case import Bound, Case, GateState
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.contradictions import find
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.ladder import judge_ladder
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.vm import with_vm

pytestmark = pytest.mark.thorough

GIVEN = [item for cases in test_hypotheses_machine.ALL.values() for case in cases.values() for item in case] + [
    item for cases in test_contradictions.CASES.values() for case in cases for item in case
]
KNOWN: list[Reading[Any]] = [item for item in GIVEN if isinstance(item, Reading)]
UNKNOWN: list[Reading[Any]] = [
    reading
    for fact in all_facts().values()
    for reading in (fact.absent("none"), fact.unsupported("no tool"), fact.not_run("refused"))
]
BOUNDS = [item for item in GIVEN if isinstance(item, Bound)] + [Bound(1), Bound(64)]


@settings(max_examples=30)
@given(
    known=st.lists(st.sampled_from(KNOWN), max_size=14),
    unknown=st.lists(st.sampled_from(UNKNOWN), max_size=8),
    later=st.lists(st.sampled_from(KNOWN), max_size=6),
    bounds=st.lists(st.sampled_from(BOUNDS), max_size=2),
)
def test_any_facts(
    known: list[Reading[Any]], unknown: list[Reading[Any]], later: list[Reading[Any]], bounds: list[Bound]
) -> None:
    facts = with_vm(Facts.of([*sourced(SEEN, *known, *unknown), *sourced(*later, epoch=1)]))
    ladder = judge_ladder(Situation(facts))
    for gate in ladder:
        assert gate.why
        assert gate.evidence or gate.state not in {GateState.PASS, GateState.FAIL}, gate
        assert len(gate.evidence) == len(set(gate.evidence)), gate
    case = Case(Situation(facts), ladder, tuple(bounds))
    for hypothesis in all_hypotheses():
        verdict = hypothesis.assess(case)
        for claim in (*verdict.for_, *verdict.against):
            assert claim.evidence or claim.basis is Basis.LITERATURE, (hypothesis.id, claim)
        assert verdict.for_ or verdict.kind != "supported", hypothesis.id
        assert verdict.against or verdict.kind != "refuted", hypothesis.id
        low, high = verdict.share_ms or (0.0, 0.0)
        assert 0 <= low <= high
    for contradiction in find(case):
        assert contradiction.evidence, contradiction
    corrections.find(Situation(facts))
