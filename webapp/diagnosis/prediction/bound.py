"""What a change can gain: the arithmetic of one decode step at each observed concurrency.

step = floor (weight reads) + communication + what is left. Ranges are combined so that the truth stays
inside as long as the inputs' ranges hold it. A profile of the step takes the place of the estimate.

Source: Amdahl's law (1967) over the parts of one decode step; two all-reduces a layer as in Megatron-LM
(Shoeybi et al. 2019); ring steps and volume as in NVIDIA/nccl-tests, PERFORMANCE.md; intervals of measured
all-reduces by percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 1993).
"""

from collections.abc import Sequence
from dataclasses import replace

from agents.facts.bench import SERVING
from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.workload import GOAL, MODEL, OBSERVED, PARALLELISM, Model, Observed, Parallelism
from webapp.diagnosis.case import Bound
from webapp.diagnosis.claim import Basis, EvidenceRef, Range
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.communication import OVER_NETWORK, PRESUMES_SHM, Communication, communication
from webapp.diagnosis.prediction.step_floor import Floor, step_floor
from webapp.diagnosis.prediction.step_profile import NO_STEP_FITS, WAITING, Split, fits_none, split_of
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.own_machine import unnamed_cards
from webapp.diagnosis.wording import most, span

TOO_LOOSE = "communication’s high end is cut at what the step leaves: this estimate is too loose"
NOT_SPLIT = "communication is not bounded, so it counts as unexplained"
NONE: Range = (1.0, 1.0)


def bounds(situation: Situation) -> tuple[Bound, ...]:
    """One for each observed concurrency, rising."""
    points = observed_points(situation.facts)
    return tuple(_of_point(situation.scope(), i) for i in range(len(points)))


def _of_point(situation: Situation, number: int) -> Bound:
    facts = situation.facts
    timed = facts.scope()
    points = observed_points(timed)
    point = points.pop(number)
    step_ms(timed, point)
    facts.reads.add(timed.reads)
    others = [step for other in points if (step := step_ms(facts, other)[0])]
    return replace(_bound(situation, point, others), reads=facts.reads, step_reads=timed.reads)


def observed_points(facts: Facts) -> list[Observed]:
    """What the operator observed, and at other concurrencies what a serving benchmark measured."""
    points = {point.concurrency: point for point in facts.value(OBSERVED) or ()}
    rates: dict[int, list[float]] = {}
    for row in facts.value(SERVING) or ():
        if row.concurrency and row.output_tokens_per_s:
            rates.setdefault(row.concurrency, []).append(row.output_tokens_per_s)
    for concurrency, rate in rates.items():
        points.setdefault(concurrency, Observed(concurrency, (min(rate), max(rate))))
    return sorted(points.values(), key=lambda point: point.concurrency)


def step_tokens(facts: Facts, concurrency: int) -> float:
    """Tokens in one forward pass: the requests of one replica and one micro-batch, with drafts."""
    parallel = facts.value(PARALLELISM) or Parallelism()
    model = facts.value(MODEL) or Model()
    requests = max(1.0, concurrency / (parallel.dp * parallel.pp))
    return requests * (1 + (model.draft_tokens or 0))


def step_ms(facts: Facts, point: Observed) -> tuple[Range | None, tuple[str, ...]]:
    """T = concurrency × tokens accepted a step ÷ output tokens a second, and what is missing for it."""
    if point.step_ms and point.step_ms[0] > 0:
        return point.step_ms, ()
    if not point.output_tokens_per_s:
        counted = " (the total counts input tokens as well)" if point.total_tokens_per_s else ""
        return None, (f"user.observed: output_tokens_per_s{counted}",)
    model = facts.value(MODEL, where=lambda model: model.draft_tokens or model.accepted_per_step) or Model()
    if model.draft_tokens and model.accepted_per_step is None:
        accepted: Range = (1.0, model.draft_tokens + 1.0)
    else:
        accepted = model.accepted_per_step or NONE
    slow, fast = point.output_tokens_per_s
    if slow <= 0:
        return None, ("user.observed: output_tokens_per_s above 0 (no token came out)",)
    work = point.concurrency * 1e3
    return (work * accepted[0] / fast, work * accepted[1] / slow), ()


def _bound(situation: Situation, point: Observed, others: Sequence[Range]) -> Bound:
    """others: the steps at the other concurrencies, one of which a profile may belong to."""
    facts = situation.facts
    tokens = step_tokens(facts, point.concurrency)
    step, missing = step_ms(facts, point)
    floor = step_floor(facts, tokens)
    comm = communication(situation, tokens)
    if step is None:
        return Bound(
            point.concurrency,
            floor_ms=floor.floor_ms,
            comm_ms=comm.comm_ms,
            basis=_basis(floor, comm),
            assumes=floor.assumes + comm.assumes,
            missing=missing + floor.missing + comm.missing,
            evidence=_refs(facts, floor, comm),
            typed_parts=_stated(facts, point, floor),
        )
    split = split_of(facts, step, others)
    stray = not split and fits_none(facts, (step, *others))
    comm = _profiled(split, comm) if split else comm
    base = floor.floor_ms[0] if floor.floor_ms else 0.0
    cut, too_loose = _cut(comm.comm_ms, step, base)
    removable = _removable(cut, comm)
    p2p = _gain_p2p(facts, step, base, removable, comm.p2p_ms)
    assumes = floor.assumes + comm.assumes + ((TOO_LOOSE,) if too_loose else ())
    assumes += ((NO_STEP_FITS,) if stray else ()) + (() if cut else (NOT_SPLIT,))
    gain, goal = _gain(step, base, removable), facts.scope()
    assumes += () if point in (facts.value(OBSERVED) or ()) else _as_served(facts)
    assumes += (_in_words(step, base, removable, gain),) if gain and removable else ()
    return Bound(
        point.concurrency,
        step_ms=step,
        floor_ms=floor.floor_ms,
        comm_ms=cut,
        unexplained_ms=_beside(step, split) if split else _left(step, floor.floor_ms, cut),
        max_gain_remove_comm=gain,
        max_gain_p2p=p2p,
        goal_reachable_by_p2p=_reachable(goal, point, p2p),
        basis=_basis(floor, comm),
        assumes=assumes,
        missing=missing + floor.missing + comm.missing,
        evidence=_refs(facts, floor, comm),
        profiled_ms=split.parts if split else {},
        unless=OVER_NETWORK if PRESUMES_SHM in comm.assumes else "",
        typed_parts=_stated(facts, point, floor),
        goal_reads=goal.reads,
    )


def _stated(facts: Facts, point: Observed, floor: Floor) -> tuple[str, ...]:
    """The step where a person observed it; the floor always, because nobody measures a model's weights."""
    step = ("step_ms",) if point in (facts.value(OBSERVED) or ()) else ()
    return (*step, "floor_ms") if floor.floor_ms else step


def _refs(facts: Facts, floor: Floor, comm: Communication) -> tuple[EvidenceRef, ...]:
    return tuple(dict.fromkeys(facts.refs(OBSERVED, SERVING) + floor.evidence + comm.evidence))


def _profiled(split: Split, estimate: Communication) -> Communication:
    """The profile's collectives in place of the estimate, which stays as the least they could need.

    Over P2P they are not known to need less than nothing, nor more than now, where no published
    figure holds for them.
    """
    low = min(split.nccl[0], estimate.comm_ms[0]) if estimate.comm_ms else 0.0
    return Communication(
        split.nccl,
        estimate.p2p_ms or (0.0, split.nccl[1]),
        Basis.MEASURED,
        (WAITING,),
        (),
        split.evidence,
        least_ms=low,
    )


def _removable(cut: Range | None, comm: Communication) -> Range | None:
    """What a change can take away of it: waiting for each other does not go with the transfers."""
    if cut is None or comm.least_ms is None:
        return cut
    return min(comm.least_ms, cut[1]), cut[1]


def _beside(step: Range, split: Split) -> Range:
    """What is left of the step beside the profile's kernels and gaps."""
    low, high = split.total
    return max(0.0, step[0] - high), max(0.0, step[1] - low)


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


def _as_served(facts: Facts) -> tuple[str, ...]:
    note = unnamed_cards(facts, SERVING)
    return (f"the step as the engine was measured{note}",) if note else ()


def _in_words(step: Range, floor_low: float, removed: Range, gain: Range) -> str:
    """The division behind a gain’s high end."""
    worst = min(max(step[0], removed[1] + floor_low), step[1])
    whole, gone = span((worst, worst)), span((worst - worst / gain[1],) * 2)
    return f"at most {most(gain)} without any communication is {whole} ms ÷ ({whole} − {gone}) ms"


def _gain_p2p(facts: Facts, step: Range, floor_low: float, comm: Range | None, p2p: Range | None) -> Range | None:
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
    target = goal.single_stream_tokens_per_s if point.concurrency == 1 else goal.total_tokens_per_s
    if target is None:
        return None
    slow, fast = point.output_tokens_per_s
    if fast * gain[1] < target:
        return False
    return True if slow * gain[0] >= target else None


def _basis(floor: Floor, comm: Communication) -> dict[str, Basis]:
    """For each quantity that there is."""
    bases = {"step_ms": Basis.MEASURED}
    if floor.floor_ms:
        bases |= {"floor_ms": floor.basis, "unexplained_ms": Basis.ESTIMATED}
    if comm.comm_ms:
        bases |= {"comm_ms": comm.basis, "max_gain_remove_comm": Basis.ESTIMATED, "max_gain_p2p": Basis.LITERATURE}
    return bases
