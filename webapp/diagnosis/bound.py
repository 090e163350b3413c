"""What a change can gain: the arithmetic of one decode step at each observed concurrency.

step = floor (weight reads) + communication + what is left. Ranges are combined so that the truth stays
inside as long as the inputs' ranges hold it.
"""

from __future__ import annotations

import math

from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.workload import (
    GOAL,
    MODEL,
    OBSERVED,
    PARALLELISM,
    Model,
    Observed,
    Parallelism,
)
from webapp.diagnosis.case import Bound
from webapp.diagnosis.claim import Basis, Range
from webapp.diagnosis.communication import Communication, communication
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.step_floor import Floor, step_floor

TOO_LOOSE = "communication's high end is cut at what the step leaves: this estimate is too loose"
NOT_SPLIT = "communication is not bounded, so it counts as unexplained"
NONE: Range = (1.0, 1.0)


def bounds(facts: Facts) -> tuple[Bound, ...]:
    """One for each observed concurrency, rising."""
    observed: tuple[Observed, ...] = facts.value(OBSERVED) or ()
    return tuple(_bound(facts, point) for point in sorted(observed, key=lambda o: o.concurrency))


def step_tokens(facts: Facts, concurrency: int) -> float:
    """Tokens in one forward pass: the requests of one replica and one micro-batch, with drafts."""
    parallel = facts.value(PARALLELISM) or Parallelism()
    model = facts.value(MODEL) or Model()
    requests = max(1.0, concurrency / (parallel.dp * parallel.pp))
    return requests * (1 + (model.draft_tokens or 0))


def step_ms(facts: Facts, point: Observed) -> tuple[Range | None, tuple[str, ...]]:
    """T = concurrency × tokens accepted a step ÷ output tokens a second, and what is missing for it."""
    if point.step_ms:
        return point.step_ms, ()
    if not point.output_tokens_per_s:
        counted = " (the total counts input tokens as well)" if point.total_tokens_per_s else ""
        return None, (f"user.observed: output_tokens_per_s{counted}",)
    model = facts.value(MODEL) or Model()
    if model.draft_tokens and model.accepted_per_step is None:
        accepted: Range = (1.0, model.draft_tokens + 1.0)
    else:
        accepted = model.accepted_per_step or NONE
    slow, fast = point.output_tokens_per_s
    work = point.concurrency * 1e3
    return (work * accepted[0] / fast, work * accepted[1] / slow), ()


def _bound(facts: Facts, point: Observed) -> Bound:
    tokens = step_tokens(facts, point.concurrency)
    step, missing = step_ms(facts, point)
    floor = step_floor(facts, tokens)
    comm = communication(facts, tokens)
    missing += floor.missing + comm.missing
    refs = tuple(dict.fromkeys(facts.refs(OBSERVED) + floor.evidence + comm.evidence))
    if step is None:
        return Bound(
            point.concurrency,
            floor_ms=floor.floor_ms,
            comm_ms=comm.comm_ms,
            basis=_basis(floor, comm),
            assumes=floor.assumes + comm.assumes,
            missing=missing,
            evidence=refs,
        )
    base = floor.floor_ms[0] if floor.floor_ms else 0.0
    cut, too_loose = _cut(comm.comm_ms, step, base)
    p2p = _gain_p2p(facts, step, base, cut, comm.p2p_ms)
    assumes = floor.assumes + comm.assumes + ((TOO_LOOSE,) if too_loose else ())
    return Bound(
        point.concurrency,
        step_ms=step,
        floor_ms=floor.floor_ms,
        comm_ms=cut,
        unexplained_ms=_left(step, floor.floor_ms, cut),
        max_gain_remove_comm=_gain(step, base, cut),
        max_gain_p2p=p2p,
        goal_reachable_by_p2p=_reachable(facts, point, p2p),
        basis=_basis(floor, comm),
        assumes=assumes if cut else (*assumes, NOT_SPLIT),
        missing=missing,
        evidence=refs,
    )


def _cut(comm: Range | None, step: Range, floor_low: float) -> tuple[Range | None, bool]:
    """Communication cannot take more than the step leaves beside the floor."""
    if comm is None:
        return None, False
    room = max(0.0, step[1] - floor_low)
    return (min(comm[0], room), min(comm[1], room)), comm[1] > room


def _left(step: Range, floor: Range | None, comm: Range | None) -> Range | None:
    if floor is None:
        return None
    none: Range = (0.0, 0.0)
    low = step[0] - floor[1] - (comm or none)[1]
    high = step[1] - floor[0] - (comm or none)[0]
    return max(0.0, low), max(0.0, high)


def _gain(step: Range, floor_low: float, removed: Range | None) -> Range | None:
    """T ÷ (T − removed), over every T of the range; what is removed leaves the floor standing.

    None when nothing bounds it: without a floor, communication might be the whole step.
    """
    if removed is None:
        return None
    # The ratio is largest at the shortest step that still holds floor and removal.
    worst = min(max(step[0], removed[1] + floor_low), step[1])
    left = worst - min(removed[1], worst - floor_low)
    if left <= 0 or worst <= floor_low:
        return None if floor_low <= 0 else NONE
    high = worst / left
    low = step[1] / max(step[1] - removed[0], left)
    return max(1.0, min(low, high)), max(1.0, high)


def _gain_p2p(
    facts: Facts, step: Range, floor_low: float, comm: Range | None, p2p: Range | None
) -> Range | None:
    """high pairs the dearest communication with the cheapest P2P, low the other way round."""
    if comm is None or p2p is None:
        return None
    seen = facts.value(NCCL_TRANSPORTS)
    if seen and seen.p2p and not seen.shm:
        return NONE
    saved = (max(0.0, comm[0] - p2p[1]), max(0.0, comm[1] - p2p[0]))
    return _gain(step, floor_low, saved)


def _reachable(facts: Facts, point: Observed, gain: Range | None) -> bool | None:
    """False: not even the best case reaches the goal. None: not known, or inside the range."""
    goal = facts.value(GOAL)
    if goal is None or gain is None or point.output_tokens_per_s is None:
        return None
    wanted = goal.single_stream_tokens_per_s if point.concurrency == 1 else goal.total_tokens_per_s
    if wanted is None:
        return None
    slow, fast = point.output_tokens_per_s
    if fast * gain[1] < wanted:
        return False
    return True if slow * gain[0] >= wanted else None


def _basis(floor: Floor, comm: Communication) -> dict[str, Basis]:
    """For each quantity that there is."""
    found = {"step_ms": Basis.MEASURED}
    if floor.floor_ms:
        found |= {"floor_ms": floor.basis, "unexplained_ms": Basis.ESTIMATED}
    if comm.comm_ms:
        found |= {
            "comm_ms": comm.basis,
            "max_gain_remove_comm": Basis.ESTIMATED,
            "max_gain_p2p": Basis.LITERATURE,
        }
    return found


def share_of(part: Range, whole: Range) -> Range:
    """Shares (0…1) of one range in another."""
    return part[0] / whole[1], min(1.0, part[1] / whole[0]) if whole[0] else math.inf
