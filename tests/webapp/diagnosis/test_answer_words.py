"""Which of two things an answer says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.p2p import P2pCode
from agents.facts.workload import GOAL, MODEL, OBSERVED, PARALLELISM, Goal, Model, Observed, Parallelism
from tests.webapp.diagnosis.building import facts_of, kvm_guest
from webapp.diagnosis.answer.headline import _second
from webapp.diagnosis.answer.plain_words import _faster, _goal, _unexplained, _who
from webapp.diagnosis.answer.timeline import Stage, pivots
from webapp.diagnosis.answer.user_figures import user_figures
from webapp.diagnosis.case import Actor, Bound, Case
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.situation import Situation

NOW = datetime(2026, 5, 4, tzinfo=UTC)


def case_with(*bounds: Bound) -> Case:
    return Case(Situation(facts_of()), (), bounds)


@pytest.mark.parametrize(
    ("unexplained", "beyond_reach", "says"),
    [
        ((3.0, 9.0), False, "At least 3 ms is unexplained: profile"),
        ((3.0, 9.0), True, "P2P alone does not reach the goal"),
        ((2.0, 9.0), False, "may be nothing"),
        ((2.01, 9.0), False, "is unexplained"),
    ],
)
def test_more_than_a_tenth_of_the_step_without_an_explanation(
    unexplained: tuple[float, float], beyond_reach: bool, says: str
) -> None:
    one = Bound(1, step_ms=(20.0, 22.0), unexplained_ms=unexplained)
    many = Bound(64, goal_reachable_by_p2p=False if beyond_reach else None)
    assert says in _second(case_with(one, many))
    assert ("does not reach" in _second(case_with(one, many))) is beyond_reach


@pytest.mark.parametrize(("gain", "words"), [(1.0, "no faster"), (1.004, "no faster"), (1.006, "at most 1 % faster")])
def test_half_a_percent_is_no_gain(gain: float, words: str) -> None:
    assert _faster(gain) == words


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ((Bound(1, goal_reachable_by_p2p=True),), ""),
        ((Bound(1),), ""),
        ((Bound(1, goal_reachable_by_p2p=False),), " The goal"),
        ((Bound(1, goal_reachable_by_p2p=True), Bound(8, goal_reachable_by_p2p=False)), " The goal"),
        ((Bound(1, goal_reachable_by_p2p=False, unless="the network"),), " On the same condition"),
    ],
)
def test_a_goal_out_of_reach_is_told(bounds: tuple[Bound, ...], says: str) -> None:
    result = diagnose(facts_of())
    object.__setattr__(result, "bounds", bounds)
    assert _goal(result).startswith(says)
    assert bool(_goal(result)) is bool(says)


@pytest.mark.parametrize(
    ("bounds", "share"),
    [
        ((), 0.0),
        ((Bound(1, step_ms=(20.0, 40.0), unexplained_ms=(10.0, 30.0)),), 0.25),
        ((Bound(8, step_ms=(1.0, 1.0), unexplained_ms=(1.0, 1.0)), Bound(1, step_ms=(20.0, 40.0))), 0.0),
        ((Bound(1, step_ms=(0.0, 0.0), unexplained_ms=(0.0, 0.0)),), 0.0),
    ],
)
def test_the_share_that_nothing_explains_is_a_single_streams(bounds: tuple[Bound, ...], share: float) -> None:
    result = diagnose(facts_of())
    object.__setattr__(result, "bounds", bounds)
    assert _unexplained(result) == share


def test_a_test_on_the_host_is_for_its_administrator() -> None:
    test = diagnose(facts_of(*kvm_guest())).next_tests[0]
    assert _who(replace(test, actor=Actor.HOST_ADMIN)) == "the host’s administrator"
    assert _who(replace(test, actor=Actor.OPERATOR)) == "the operator"


@pytest.mark.parametrize(
    ("reading", "told"),
    [
        (MODEL.known(Model(layers=78, experts=256)), ("layers 78", "experts 256")),
        (MODEL.known(Model(weight_bytes=(4e11, 4e11))), ("checkpoint 400 GB",)),
        (PARALLELISM.known(Parallelism(tp=8)), ("tensor parallel 8",)),
        (OBSERVED.known((Observed(1, (11.0, 11.0)),)), ("11 output tok/s at 1 request at once",)),
        (
            OBSERVED.known((Observed(2, None, (90.0, 90.0), (5.0, 5.0)),)),
            ("90 tok/s in all at 2 requests at once", "a step of 5 ms at 2 requests at once"),
        ),
        (GOAL.known(Goal(100.0)), ("goal 100 tok/s for a single stream",)),
        (GOAL.known(Goal(None, 900.0)), ("goal 900 output tok/s in all",)),
    ],
)
def test_the_figures_that_a_person_typed(reading: Reading[Any], told: tuple[str, ...]) -> None:
    assert user_figures(facts_of(reading)) == told


def test_a_pivot_names_what_changed_and_nothing_else() -> None:
    guest = facts_of(*kvm_guest(P2pCode.NS))
    moments = pivots([Stage("said", NOW, facts_of()), Stage("guest", NOW, guest), Stage("again", NOW, guest)])
    changes = [{change.subject: (change.before, change.after) for change in moment.changes} for moment in moments]
    assert changes[0] == {}
    assert changes[1]["gate driver (pcie)"] == ("unknown", "fail")
    assert changes[1]["p2p_denied_no_clique"] == ("open", "supported")
    assert all(before != after for before, after in changes[1].values())
    assert changes[2] == {}
