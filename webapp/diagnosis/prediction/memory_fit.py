"""Whether weights, cache and a reserve fit the GPUs of a layout."""

from dataclasses import dataclass

from agents.facts.gpu import GPUS
from agents.facts.workload import MODEL
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.reference.gpus import gpu_spec

GB = 1e9
# Context, activations, graphs and NCCL buffers: serving engines hold back about a tenth (vLLM
# gpu_memory_utilization 0.9, SGLang mem_fraction_static 0.85 to 0.9 by default, 2026).
RESERVE_SHARE = 0.10
AS_SAID = "; the weights’ size is the one said, not read"


@dataclass(frozen=True, slots=True)
class Fit:
    """fits None: weights or memory unknown, or inside the weights' range. Bytes over all the GPUs."""

    fits: bool | None
    why: str


def gpu_bytes(facts: Facts) -> float | None:
    """Memory of the smallest GPU as the driver lists it, else as specified."""
    gpus = facts.value(GPUS) or ()
    listed = [gpu.vram_mib * 2**20 for gpu in gpus if gpu.vram_mib]
    specified = [spec.vram_gb * GB for gpu in gpus if (spec := gpu_spec(gpu.name))]
    return min(listed or specified, default=None)


def _label(facts: Facts, each: float) -> str:
    """The size the product is sold with ("96"), which is what people know it by."""
    specs = [gpu_spec(gpu.name) for gpu in facts.value(GPUS) or ()]
    sold = min((spec.vram_gb for spec in specs if spec), default=None)
    return f"{each / GB:.0f}" if sold is None else str(sold)


def fit(facts: Facts, gpus: int) -> Fit:
    """Weights shared out over this many GPUs, with a reserve on each."""
    model, each = facts.value(MODEL), gpu_bytes(facts)
    if model is None or model.weight_bytes is None:
        also = "" if each else ", nor is the GPUs’ memory"
        return Fit(None, f"the size of the checkpoint is not known{also}")
    if each is None:
        return Fit(None, "the GPUs’ memory is not known")
    low, high = model.weight_bytes
    room = gpus * each * (1 - RESERVE_SHARE)
    size = f"{low / GB:.0f}" if low == high else f"{low / GB:.0f}–{high / GB:.0f}"
    have = f"{gpus} × {_label(facts, each)} GB with {RESERVE_SHARE * 100:.0f} % kept as a reserve"
    if low > room:
        return Fit(False, f"{size} GB of weights plus a reserve do not fit {have}{AS_SAID}")
    if high > room:
        return Fit(None, f"{size} GB of weights may or may not fit {have}{AS_SAID}")
    left = room - high
    text = f"{size} GB of weights fit {have}; {left / GB:.0f} GB are left for the cache"
    return Fit(True, text + _context(left, model.kv_bytes_per_token) + AS_SAID)


def too_large(facts: Facts, gpus: int) -> Fit | None:
    """The fit, where they certainly do not."""
    room = fit(facts, gpus)
    return room if room.fits is False else None


def _context(left: float, each: tuple[float, float] | None) -> str:
    """How much context that holds, over all requests at once."""
    if each is None or each[1] <= 0:
        return ", whose size for a token is not known"
    tokens = round(left / each[1], -3)
    return f", enough for about {tokens:,.0f} tokens of context over all requests"
