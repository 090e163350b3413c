"""What tensor parallelism's all-reduces cost in one decode step: a typical range, not a proof.

Two all-reduces a layer, one after the other; each carries tokens × hidden size × activation bytes, whatever
the number of GPUs. One that was measured counts from the low end of its 95 % interval to the high end.

Source: Megatron-LM, Shoeybi et al. 2019; percentile bootstrap, Efron and Tibshirani 1993, chapter 13.
"""

from dataclasses import dataclass

from agents.facts.bench import ALLREDUCE, COPY
from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.workload import MODEL, PARALLELISM, Model, Parallelism
from webapp.diagnosis.claim import Basis, EvidenceRef, Range
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.reference.curves import (
    P2P_ALL_REDUCE_SOURCE,
    STAGED_SOURCE,
    nccl_model_us,
    p2p_all_reduce_us,
    ring_steps,
    ring_volume,
    staged_gb_per_s,
)
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.all_reduces import AllReduceTime
from webapp.diagnosis.situation.copy_curve import CopyCurve
from webapp.diagnosis.situation.gpus import Link
from webapp.diagnosis.wording import span

PER_LAYER = 2
PRESUMES_SHM = "presumes shared memory or better until the NCCL log was seen"
OVER_NETWORK = "unless NCCL goes over the network: its log was not read"
BEFORE = "communication was measured before the last change, and is taken to be the same since"
INTERVALS = (
    "intervals are percentile bootstraps of the median over one run’s samples (Efron and Tibshirani 1993), "
    "interpolated between measured sizes; another run may differ by more"
)
NO_COPY = (
    "bench.copy or bench.allreduce: no copy or all-reduce between GPUs was measured, so communication cannot be bounded"
)


@dataclass(frozen=True, slots=True)
class Communication:
    """Per step. p2p_ms: the same all-reduces over P2P. None: not computable, see missing.

    least_ms: the part that is certain to be transfers, where comm_ms holds waiting as well.
    """

    comm_ms: Range | None = None
    p2p_ms: Range | None = None
    basis: Basis = Basis.ESTIMATED
    assumes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    evidence: tuple[EvidenceRef, ...] = ()
    least_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of one all-reduce, and what that figure rests on."""

    us: Range
    basis: Basis
    assumes: tuple[str, ...]
    evidence: tuple[EvidenceRef, ...]


def communication(situation: Situation, tokens: float) -> Communication:
    """tokens: in one step of one replica."""
    facts = situation.facts
    model = facts.value(MODEL) or Model()
    parallel = facts.value(PARALLELISM)
    missing = _missing(facts, model, parallel)
    if missing or parallel is None:
        return Communication(missing=missing)
    if parallel.tp == 1:
        return Communication((0.0, 0.0), (0.0, 0.0), Basis.INFERRED, ("tp 1: no all-reduce",))
    size = message_bytes(model, tokens)
    count = PER_LAYER * (model.layers or 0)
    seen = facts.value(NCCL_TRANSPORTS)
    p2p_us, p2p_source = _over_p2p_us(situation, size, parallel.tp)
    common = [] if seen and (seen.shm or seen.p2p) else [PRESUMES_SHM]
    common += [f"{count:g} all-reduces a step, one after the other", *p2p_source]
    if parallel.pp > 1:
        common.append("transfers between pipeline stages are left out")
    in_use = bool(seen and seen.p2p and not seen.shm)
    timed = _measured(situation, size, parallel.tp, p2p=in_use) or _from_copies(situation, size, parallel.tp)
    if timed is None:
        return Communication(missing=(NO_COPY,))
    return Communication(
        _scaled(timed.us, count),
        _scaled(p2p_us, count),
        timed.basis,
        tuple(dict.fromkeys((*timed.assumes, *common))),
        (),
        timed.evidence,
    )


def message_bytes(model: Model, tokens: float) -> float:
    return tokens * (model.hidden_size or 0) * (model.activation_bytes or 0)


def all_reduce_us(curve: CopyCurve, size_bytes: float, ranks: int, link: Link) -> Range:
    """low: the cheaper of one whole copy and NCCL's own model. high: every step of the ring costs a
    whole smallest copy, and the bytes come on top at the plateau's speed."""
    plateau = curve.plateau_gb_per_s or staged_gb_per_s(link.gen, link.width)
    wire_us = ring_volume(ranks) * size_bytes / (plateau * 1e3)
    high = ring_steps(ranks) * curve.smallest_us + wire_us
    one_copy = curve.time_us(size_bytes)
    low = nccl_model_us(size_bytes, ranks, plateau)
    low = low if one_copy is None else min(low, one_copy)
    return min(low, high), high


def _measured(situation: Situation, size_bytes: float, ranks: int, *, p2p: bool) -> Timed | None:
    time = situation.all_reduce(size_bytes, ranks, p2p=p2p)
    if time is None:
        return None
    past = (BEFORE,) if situation.facts.is_past(ALLREDUCE) else ()
    assumes = (*_intervals("an all-reduce as measured here", time), *past)
    return Timed(time.us, Basis.MEASURED, assumes, situation.facts.refs(ALLREDUCE))


def _intervals(what: str, time: AllReduceTime) -> tuple[str, ...]:
    """ "<what>: median 12.90 µs, 95 % interval 12.70–13.10", and the method; () without an interval."""
    if time.us == time.medians_us:
        return ()
    many = "s" if time.medians_us[0] < time.medians_us[1] else ""
    median, interval = span(time.medians_us, 2), span(time.us, 2)
    return (f"{what}: median{many} {median} µs, 95 % interval{many} {interval}", INTERVALS)


def _from_copies(situation: Situation, size_bytes: float, ranks: int) -> Timed | None:
    curve = situation.copy_curve
    if curve is None:
        return None
    assumes = ["communication is computed from copies between two GPUs: a typical range and not a proof"]
    if not curve.device_timed:
        assumes.append("the copies were host-synchronised, which reads longer than the GPUs need")
    if situation.facts.is_past(COPY):
        assumes.append(BEFORE)
    if curve.plateau_gb_per_s is None:
        assumes.append(f"large messages at the speed of {STAGED_SOURCE}")
    link = situation.link
    us = all_reduce_us(curve, size_bytes, ranks, link)
    assumes.append(_in_words(curve, us, size_bytes, ranks, link))
    return Timed(us, Basis.ESTIMATED, tuple(assumes), curve.evidence)


def _in_words(curve: CopyCurve, us: Range, size_bytes: float, ranks: int, link: Link) -> str:
    """How one all-reduce's time was computed, so that a reader can do it again."""
    plateau = curve.plateau_gb_per_s or staged_gb_per_s(link.gen, link.width)
    return (
        f"an all-reduce takes {span(us)} µs: at least what one copy or NCCL’s own model needs, at most "
        f"{ring_steps(ranks)} copies of {curve.smallest_us:.1f} µs in a row and {ring_volume(ranks):g} × "
        f"{size_bytes / 1024:g} KiB at {plateau:.1f} GB/s"
    )


def _over_p2p_us(situation: Situation, size_bytes: float, ranks: int) -> tuple[Range, tuple[str, ...]]:
    time = situation.all_reduce(size_bytes, ranks, p2p=True)
    if time is not None:
        what = "all-reduces over P2P as measured here"
        return time.us, _intervals(what, time) or (what,)
    published = p2p_all_reduce_us(size_bytes, ranks, situation.link.share)
    return published, (f"all-reduces over P2P as in {P2P_ALL_REDUCE_SOURCE}",)


def _missing(facts: Facts, model: Model, parallel: Parallelism | None) -> tuple[str, ...]:
    """Inputs that are not there, and shapes and transports the arithmetic does not hold for."""
    seen = facts.value(NCCL_TRANSPORTS)
    absences = {
        "user.parallelism: tp": parallel is None,
        "user.model: layers": model.layers is None,
        "user.model: hidden_size": model.hidden_size is None,
        "user.model: activation_bytes": model.activation_bytes is None,
        "a bound for DP attention: it uses its own collectives, measure them": bool(parallel and parallel.dp_attention),
        "a bound for expert parallel: it uses its own collectives, measure them": bool(parallel and parallel.ep > 1),
        "a bound for the NET transport: its all-reduces must be measured": bool(seen and seen.net),
    }
    absent_inputs = tuple(name for name, absent in absences.items() if absent)
    measured = facts.value(COPY) is not None or facts.value(ALLREDUCE) is not None
    single = parallel is not None and parallel.tp == 1
    return absent_inputs if measured or single else (*absent_inputs, NO_COPY)


def _scaled(us: Range, count: float) -> Range:
    return us[0] * count / 1e3, us[1] * count / 1e3
