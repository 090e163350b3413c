"""In which order two arms are measured, so that what the machine does by itself is not taken for a change.

Without a restart the arms take turns (ABAB), and each run is compared with its neighbour. Where a switch
costs a restart, each arm is measured in one block, and the first comes back at the end: what it then differs
by is drift (Box, Hunter and Hunter 2005, chapter 3: block what you can, and check the rest).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from webapp.diagnosis.case import Restart
from webapp.diagnosis.compare.conditions import side_of
from webapp.diagnosis.compare.effects import MARGIN, Comparison, Outcome
from webapp.diagnosis.compare.kinds import Kind
from webapp.diagnosis.compare.verification import Verified, verify
from webapp.diagnosis.facts import Facts, Sourced

RUNS, BACK = 5, 2


class Order(StrEnum):
    TURNS = "in turns"
    BLOCKS = "in blocks"


class Arm(StrEnum):
    A = "A"
    B = "B"


@dataclass(frozen=True, slots=True)
class Step:
    """One run. block: from 1; a pair where the arms take turns. switch: the arm is another than before."""

    number: int
    arm: Arm
    block: int
    switch: bool


@dataclass(frozen=True, slots=True)
class Plan:
    order: Order
    why: str
    steps: tuple[Step, ...]

    def next_after(self, done: Collection[int]) -> Step | None:
        """done: numbers of the steps that were measured. None: all of them."""
        return next((step for step in self.steps if step.number not in done), None)


def plan(restart: Restart, *, asks_engine: bool, runs: int = RUNS) -> Plan:
    """restart: what has to restart for a switch. asks_engine: the measurement asks the serving engine; one
    that does not starts processes of its own, which read their settings each time."""
    free = restart is Restart.NONE or (restart is Restart.ENGINE and not asks_engine)
    if free:
        arms = [Arm.A, Arm.B] * runs
        blocks = [i // 2 + 1 for i in range(2 * runs)]
        return Plan(Order.TURNS, "no restart is needed to switch", _steps(arms, blocks))
    arms = [Arm.A] * runs + [Arm.B] * runs + [Arm.A] * BACK
    blocks = [1] * runs + [2] * runs + [3] * BACK
    what = "VM" if restart is Restart.VM else restart
    why = f"each switch restarts the {what}, so each arm is one block, and the first comes back"
    return Plan(Order.BLOCKS, why, _steps(arms, blocks))


def _steps(arms: Sequence[Arm], blocks: Sequence[int]) -> tuple[Step, ...]:
    before = [None, *arms]
    return tuple(
        Step(i, arm, block, arm is not before[i - 1])
        for i, (arm, block) in enumerate(zip(arms, blocks, strict=True), 1)
    )


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of a plan so far. drift: the first arm at its beginning against its end, None while there is no
    end. verified: B against A, None while one of them is missing."""

    verified: Verified | None
    drift: Comparison | None
    drifted: bool | None


def trial(
    planned: Plan, kind: Kind, facts: Facts, measured: Sequence[tuple[Step, Sourced]], intended: frozenset[str]
) -> Trial:
    """measured: results by their step. Only pairs that are whole count where the arms take turns."""
    in_order = sorted(measured, key=lambda pair: pair[0].number)
    turns = planned.order is Order.TURNS
    whole = _whole_blocks(in_order) if turns else in_order
    arms = [[item for step, item in whole if step.arm is arm] for arm in Arm]
    drift = _drift(kind, [(step, item) for step, item in in_order if step.arm is Arm.A], turns)
    drifted = None if drift is None else _drifts(drift)
    if not arms[0] or not arms[1]:
        return Trial(None, drift, drifted)
    sides = (side_of(arms[0], facts), side_of(arms[1], facts))
    comparison = verify(kind, *sides, intended, paired=turns)
    return Trial(_after_drift(comparison) if drifted and not turns else comparison, drift, drifted)


def _whole_blocks(measured: Sequence[tuple[Step, Sourced]]) -> list[tuple[Step, Sourced]]:
    arms: dict[int, set[Arm]] = {}
    for step, _ in measured:
        arms.setdefault(step.block, set()).add(step.arm)
    return [(step, item) for step, item in measured if arms[step.block] == set(Arm)]


def _drift(kind: Kind, first_arm: Sequence[tuple[Step, Sourced]], turns: bool) -> Comparison | None:
    """First block against last: of one run each where the arms take turns."""
    blocks = sorted({step.block for step, _ in first_arm})
    if len(blocks) < (3 if turns else 2):
        return None
    first, last = (
        [item.reading.value for step, item in first_arm if step.block == block] for block in (blocks[0], blocks[-1])
    )
    return kind.compare(first, last, False)


def _drifts(comparison: Comparison) -> bool:
    """Beyond chance at any size; where single runs cannot tell, more than the margin at most of them."""
    if any(effect.low is not None for effect in comparison.effects):
        return any(effect.differs for effect in comparison.effects)
    far = sum(abs(effect.speedup - 1) > MARGIN for effect in comparison.effects)
    return 2 * far > len(comparison.effects)


def _after_drift(comparison: Verified) -> Verified:
    """Blocks cannot tell a change from a drift."""
    why = "the first arm was not the same any more when it came back, so a change may be drift"
    undecided = replace(comparison.compared, outcome=Outcome.CANNOT_TELL, why=why, excluded="")
    return replace(comparison, compared=undecided)
