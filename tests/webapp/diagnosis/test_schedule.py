"""Arms in turns take a drift out of the answer; arms in blocks find it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.facts.bench import COPY, CopyPath, CopyResult, CopyRow, Timing
from webapp.diagnosis.case import Restart
from webapp.diagnosis.compare.effects import Outcome
from webapp.diagnosis.compare.kinds import KINDS
from webapp.diagnosis.compare.schedule import Arm, Order, Plan, Trial, plan, trial
from webapp.diagnosis.facts import Facts, Sourced

COPIES = next(kind for kind in KINDS if kind.fact is COPY)
SIZES = {12288: 3.4, 49152: 4.0, 196608: 8.0}


@pytest.mark.parametrize(
    ("restart", "asks_engine", "order", "arms"),
    [
        (Restart.NONE, True, Order.TURNS, "ABABAB"),
        (Restart.ENGINE, False, Order.TURNS, "ABABAB"),
        (Restart.ENGINE, True, Order.BLOCKS, "AAABBBAA"),
        (Restart.VM, False, Order.BLOCKS, "AAABBBAA"),
        (Restart.HOST, False, Order.BLOCKS, "AAABBBAA"),
    ],
)
def test_turns_where_a_switch_costs_nothing_else_blocks_and_back(
    restart: Restart, asks_engine: bool, order: Order, arms: str
) -> None:
    found = plan(restart, asks_engine=asks_engine, runs=3)
    assert found.order is order
    assert "".join(step.arm for step in found.steps) == arms
    switches = [step.number for step in found.steps if step.switch]
    assert switches == ([1, 2, 3, 4, 5, 6] if order is Order.TURNS else [1, 4, 7])


@given(runs=st.integers(2, 20), done=st.sets(st.integers(1, 40)))
def test_the_next_step_is_the_first_that_is_missing(runs: int, done: set[int]) -> None:
    found = plan(Restart.NONE, asks_engine=False, runs=runs)
    step = found.next_after(done)
    missing = [s.number for s in found.steps if s.number not in done]
    assert (step.number if step else None) == (missing[0] if missing else None)


def measured(planned: Plan, *, gain: float = 1.0, drift: float = 0.0, noise: float = 0.003, upto: int = 99) -> Trial:
    """Runs of the plan in its order. drift: by what share each run is slower than the one before."""
    chance = random.Random(3)
    items = []
    for step in planned.steps[:upto]:
        factor = (1 + drift) ** step.number / (gain if step.arm is Arm.B else 1)
        rows = tuple(
            CopyRow(CopyPath.PEER, "0", "1", size, us * factor * (1 + chance.gauss(0, noise)), Timing.DEVICE)
            for size, us in SIZES.items()
        )
        source = f"bench.copy@{step.number}"
        items.append((step, Sourced(COPY.known(CopyResult(rows)), source, 0, step.number)))
    facts = Facts.of(item for _, item in items)
    return trial(planned, COPIES, facts, items, frozenset())


TURNS = plan(Restart.NONE, asks_engine=False)
BLOCKS = plan(Restart.VM, asks_engine=False)


def outcome(found: Trial) -> Outcome:
    assert found.verified
    return found.verified.compared.outcome


def test_in_turns_a_drift_is_no_change_and_a_change_is_seen_through_it() -> None:
    """Both arms slow down by 2 % a run: 20 % over the whole of it."""
    same = measured(TURNS, drift=0.02)
    assert outcome(same) is Outcome.EQUIVALENT
    assert same.drifted is True
    assert outcome(measured(TURNS, gain=1.1, drift=0.02)) is Outcome.IMPROVED


def test_in_blocks_a_drift_would_be_taken_for_a_change_and_is_said_instead() -> None:
    found = measured(BLOCKS, drift=0.02)
    assert found.drifted is True
    assert found.verified
    assert found.verified.compared.outcome is Outcome.CANNOT_TELL
    assert "drift" in found.verified.compared.why


def test_in_blocks_without_drift_a_change_is_seen() -> None:
    found = measured(BLOCKS, gain=1.1)
    assert found.drifted is False
    assert outcome(found) is Outcome.IMPROVED
    assert outcome(measured(BLOCKS)) is Outcome.EQUIVALENT


def test_half_way_it_says_what_is_not_known_yet() -> None:
    none = measured(BLOCKS, upto=0)
    assert (none.verified, none.drifted) == (None, None)
    early = measured(BLOCKS, upto=7)
    assert early.verified
    assert early.verified.compared.runs == (5, 2)
    assert early.drifted is None
    odd = measured(TURNS, upto=5)
    assert odd.verified
    assert odd.verified.compared.runs == (2, 2)


def test_a_run_without_its_neighbour_is_left_out() -> None:
    steps = [step for step in TURNS.steps if step.number not in {4}]
    items = [
        (
            step,
            Sourced(
                COPY.known(CopyResult((CopyRow(CopyPath.PEER, "0", "1", 12288, 3.4, Timing.DEVICE),))),
                f"s{step.number}",
                0,
                step.number,
            ),
        )
        for step in steps
    ]
    found = trial(TURNS, COPIES, Facts.of(i for _, i in items), items, frozenset())
    assert found.verified
    assert found.verified.compared.runs == (4, 4)
    assert {step.block for step in steps} == {1, 2, 3, 4, 5}
