"""The floor of a decode step: the weights each GPU must read, at the speed its memory can give.

Reads of the KV cache come on top and are left out, so it stays a floor.

Source: roofline model, Williams et al. 2009; public GPU specifications; streams reach about 0.9 of the peak.
"""

from dataclasses import dataclass
from typing import Any

from agents.facts import Fact
from agents.facts.bench import COPY, CopyPath, Timing
from agents.facts.gpu import GPUS
from agents.facts.kernels import MEMORY
from agents.facts.workload import MODEL, PARALLELISM, Model, Parallelism
from webapp.diagnosis.claim import Basis, EvidenceRef, Range
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.reference.gpus import gpu_spec

# What large streaming reads reach of the peak on recent data-centre GPUs.
REACHED_OF_PEAK = 0.9
# Four times the largest L2 in the field (128 MiB): a copy of that size is served by memory.
BEYOND_L2_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class Floor:
    floor_ms: Range | None
    basis: Basis = Basis.LITERATURE
    assumes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    evidence: tuple[EvidenceRef, ...] = ()


def step_floor(facts: Facts, tokens: float) -> Floor:
    """tokens: in one step of one replica, draft tokens counted."""
    model = facts.value(MODEL) or Model()
    parallel = facts.value(PARALLELISM) or Parallelism()
    read = bytes_read(model, tokens)
    measured = measured_bandwidth(facts)
    peak = _specified_gb_per_s(facts)
    missing = _missing(model, tokens, has_bandwidth=bool(measured or peak))
    bandwidth = measured.gb_per_s if measured else (peak or 0) * REACHED_OF_PEAK
    if read is None or not bandwidth:
        return Floor(None, missing=missing)
    low, high = (size / parallel.tp / bandwidth / 1e6 for size in read)
    source = (
        f"memory at {bandwidth:.0f} GB/s, {measured.how}"
        if measured
        else f"memory at {REACHED_OF_PEAK} × {peak:.0f} GB/s (specification)"
    )
    refs = facts.refs(measured.fact if measured else GPUS)
    basis = Basis.ESTIMATED if measured else Basis.LITERATURE
    assumes = (f"the floor is weight reads alone, {source}; KV-cache reads come on top",)
    return Floor((low, high), basis, assumes, missing, refs + facts.refs(MODEL))


def bytes_read(model: Model, tokens: float) -> Range | None:
    """Bytes all ranks together read in one step; None when the active weights are not known.

    A batch touches E(1−(1−k/E)^tokens) experts a layer when each token picks k of E at random.
    """
    if model.active_weight_bytes is None:
        return None
    active, experts, k = model.active_weight_bytes, model.experts, model.experts_active
    if tokens <= 1 or not experts or not k or k >= experts or model.weight_bytes is None:
        return active
    touched = experts * (1 - (1 - k / experts) ** tokens)
    share = (touched - k) / (experts - k)
    low, high = (part + share * max(whole - part, 0.0) for part, whole in zip(active, model.weight_bytes, strict=True))
    return low, max(low, high)


def _missing(model: Model, tokens: float, *, has_bandwidth: bool) -> tuple[str, ...]:
    sparse = bool(model.total_params and model.active_params and model.total_params > model.active_params)
    absences = {
        "user.model: active_weight_bytes (for the floor)": model.active_weight_bytes is None,
        "guest.gpus: a GPU whose memory bandwidth is known (for the floor)": not has_bandwidth,
    }
    if tokens > 1 and sparse:
        absences["user.model: experts, experts_active (for the floor of a batch)"] = (
            model.experts is None or model.experts_active is None
        )
        absences["user.model: weight_bytes (for the floor of a batch)"] = model.weight_bytes is None
    return tuple(name for name, absent in absences.items() if absent)


def _specified_gb_per_s(facts: Facts) -> float | None:
    """The highest among the GPUs, so that a mixed machine keeps its floor a floor."""
    specs = [gpu_spec(gpu.name) for gpu in facts.value(GPUS) or ()]
    return max((spec.bandwidth_gb_per_s for spec in specs if spec), default=None)


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """What memory gave. fact: where it was read. how: in words, for the floor's assumptions."""

    gb_per_s: float
    fact: Fact[Any]
    how: str


def measured_bandwidth(facts: Facts) -> Bandwidth | None:
    """Beyond four times the L2: kernels made for it if they were run, else a large copy. None: neither.

    The fastest kernel on the fastest GPU, so that the floor stays a floor.
    """
    memory = facts.value(MEMORY)
    rows = [
        row
        for row in (memory.rows if memory else ())
        if row.beyond_l2 and row.figures.timing is Timing.DEVICE and not row.figures.unstable
    ]
    if rows:
        best = max(rows, key=lambda row: row.gb_per_s)
        how = f"measured by a {best.kernel} kernel on buffers of at least four times the L2"
        return Bandwidth(best.gb_per_s, MEMORY, how)
    rate = _copied_gb_per_s(facts)
    how = "measured on a copy larger than four times the L2"
    return Bandwidth(rate, COPY, how) if rate else None


def _copied_gb_per_s(facts: Facts) -> float | None:
    """A copy inside one GPU reads and writes every byte. Copies in the CPU's memory, which are made where
    there is no GPU to try the program, say nothing of it."""
    result = facts.value(COPY)
    rates = [
        2 * row.size_bytes / row.time_us / 1e3
        for row in (result.rows if result else ())
        if row.path is CopyPath.SAME
        and row.source != "cpu"
        and row.timing is Timing.DEVICE
        and row.size_bytes >= BEYOND_L2_BYTES
        and row.time_us > 0
    ]
    return max(rates, default=None)
