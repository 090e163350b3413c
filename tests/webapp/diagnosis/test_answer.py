"""The one plain answer: the worst first, and never more than the evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pCode, P2pMatrix
from tests.webapp.diagnosis.sample_facts import case_at, diagnosed
from webapp.diagnosis.answer.headline import headline, summary
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.case import Bound, Case, Contradiction, Gate, GateState, Path, Verdict, VerdictKind
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation import Situation

REFUSED = Gate("driver", Path.PCIE, GateState.FAIL, "NS on 56 of 56 ordered pairs: policy")


def case(comm_high: float, *gates: Gate) -> Case:
    bound = Bound(1, (100.0, 100.0), (5.0, 5.0), (1.0, comm_high), (0.0, 94.0))
    return Case(Situation(Facts.of([])), gates, (bound,))


@pytest.mark.parametrize(
    ("comm_high", "words"),
    [(4, "a twentieth"), (33, "a third"), (34, "two fifths"), (49, "half"), (80, "perhaps most")],
)
def test_a_share_is_named_by_what_is_above_it(comm_high: float, words: str) -> None:
    assert words in headline(case(comm_high, REFUSED))
    assert "cannot reach each other" in headline(case(comm_high, REFUSED))
    assert words in headline(case(comm_high))


@pytest.mark.parametrize(("unexplained_ms", "mostly"), [(39.0, False), (41.0, True), (51.0, True)])
def test_most_is_more_than_half_of_the_shortest_step(unexplained_ms: float, mostly: bool) -> None:
    bound = Bound(1, (80.0, 100.0), (5.0, 5.0), (1.0, 20.0), (unexplained_ms, 94.0))
    text = headline(Case(Situation(Facts.of([])), (REFUSED,), (bound,)))
    assert text.startswith("Most of the step is unexplained") is mostly


@pytest.mark.parametrize(("clashes", "words"), [(0, ""), (1, "One thing that we were given"), (2, "2 things")])
def test_a_manager_hears_of_contradictions_where_there_are_some(clashes: int, words: str) -> None:
    clash = Contradiction("gpu_count", "8 here, 7 there", (EvidenceRef("a", 1),))
    text = for_a_manager(replace(diagnosed("guest"), contradictions=(clash,) * clashes))
    assert ("contradict" in text) is bool(clashes)
    assert words in text


@pytest.mark.parametrize(("unexplained_ms", "first"), [(40.0, False), (60.0, True)])
def test_a_manager_hears_first_of_what_is_mostly_unexplained(unexplained_ms: float, first: bool) -> None:
    bound = Bound(1, (100.0, 100.0), (5.0, 5.0), (1.0, 20.0), (unexplained_ms, 94.0))
    text = for_a_manager(replace(diagnosed("guest"), bounds=(bound,)))
    assert f"At least {unexplained_ms:.0f} % of the time has no explanation yet." in text
    assert text.startswith("At least") is first


def test_an_open_nvlink_is_not_called_refused() -> None:
    nvlink = Gate("driver", Path.NVLINK, GateState.PASS, "OK")
    assert "cannot reach" not in headline(case(33, nvlink, REFUSED))


@pytest.mark.parametrize(
    ("verdict", "words"), [("hang", "hang"), ("false_p2p_grant", "switch it off"), ("gpu_lost", "do not answer")]
)
def test_what_is_broken_comes_before_any_question_of_speed(verdict: str, words: str) -> None:
    found = replace(case(33, REFUSED), verdicts={verdict: Verdict(VerdictKind.SUPPORTED)})
    assert words in headline(found)


def test_an_allowance_is_not_a_delivery() -> None:
    ok = P2pMatrix(("GPU0", "GPU1"), ((None, P2pCode.OK), (P2pCode.OK, None)))
    found = diagnose(Facts.of([Sourced(P2P_READ.known(ok), "r"), Sourced(P2P_WRITE.known(ok), "w")]))
    assert found.headline.endswith("whether the bytes arrive was not checked.")


@pytest.mark.parametrize("stage", ["first", "guest", "host", "after"])
def test_the_summary_is_two_sentences(stage: str) -> None:
    assert summary(case_at(stage)).count(". ") == 1
    assert diagnosed(stage).summary.endswith(".")


def test_the_summary_names_the_code_the_driver_refused_with() -> None:
    assert summary(case(33, REFUSED)).startswith(
        "The driver refuses peer access (NS on 56 of 56 ordered pairs) by its own policy; communication is"
    )
    assert "peer access" not in summary(case(33, replace(REFUSED, state=GateState.PASS)))
