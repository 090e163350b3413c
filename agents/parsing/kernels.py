"""The kind of a GPU kernel's work, by its name, and the profile of a step from its kernels.

Names as nsys and the torch profiler print them, of NCCL, vLLM, SGLang, FlashInfer, FlashAttention, cuBLAS and CUTLASS
(2024-2026). An unknown name is "other": dense layers, norms, sampling.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from agents.facts.bench import Profile


class Kind(StrEnum):
    """collective: NCCL's kernels and the engines' replacements for them."""

    COLLECTIVE = "collective"
    ATTENTION = "attention"
    MOE = "moe"
    OTHER = "other"


_COLLECTIVE = re.compile(
    r"nccl(?:Dev)?Kernel|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|"
    r"multimem_|nvshmem|deep_?ep\b|symm_mem",
    re.IGNORECASE,
)
_MOE = re.compile(
    r"moe|expert|topk_?gating|grouped_?gemm|group_?gemm|GroupProblemShape|permute_?(?:token|rows)|"
    r"m_grouped",
    re.IGNORECASE,
)
_ATTENTION = re.compile(
    r"attention|attn|fmha|flash_(?:fwd|mla|decode)|flash::|flash_fprop|flashmla|_mla_|\bmla_|"
    r"sdpa|Batch(?:Decode|Prefill)With|paged_kv|\bmha_|merge_states",
    re.IGNORECASE,
)
# Work that a decode step does once, at its start or end, and that no layer repeats.
_ONCE = re.compile(r"argmax|sampl|multinomial|embedding|exponential_|log_softmax", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kernel:
    """start and duration on one GPU's clock."""

    name: str
    start_us: float
    duration_us: float


@lru_cache(maxsize=8192)
def kind_of(name: str) -> Kind:
    short = name[:600]
    if _COLLECTIVE.search(short):
        return Kind.COLLECTIVE
    if _MOE.search(short):
        return Kind.MOE
    return Kind.ATTENTION if _ATTENTION.search(short) else Kind.OTHER


def is_once_per_step(name: str) -> bool:
    return bool(_ONCE.search(name[:600])) and kind_of(name) is Kind.OTHER


def profile(kernels: Iterable[Kernel], first_us: float, last_us: float, steps: int) -> Profile:
    """The mean step of the window [first, last), which holds `steps` whole steps.

    Where kernels overlap, a moment counts for the one that is no collective: nccl_ms is the time in which only
    collectives ran. gaps_ms: no kernel ran.
    """
    edges: list[tuple[float, int, Kind]] = []
    for kernel in kernels:
        start, end = (max(kernel.start_us, first_us), min(kernel.start_us + kernel.duration_us, last_us))
        if end > start:
            edges += [(start, 1, kind_of(kernel.name)), (end, -1, kind_of(kernel.name))]
    edges.sort(key=lambda edge: (edge[0], edge[1]))
    spent = _sweep(edges)
    busy = sum(spent.values())
    per_step = {kind: us / steps / 1000 for kind, us in spent.items()}
    gaps_ms = max(0.0, last_us - first_us - busy) / steps / 1000
    return Profile(
        per_step[Kind.COLLECTIVE], per_step[Kind.ATTENTION], per_step[Kind.MOE], per_step[Kind.OTHER], gaps_ms
    )


def _sweep(edges: Sequence[tuple[float, int, Kind]]) -> dict[Kind, float]:
    """Microseconds by kind; each moment once."""
    running = dict.fromkeys(Kind, 0)
    spent = dict.fromkeys(Kind, 0.0)
    order = (Kind.MOE, Kind.ATTENTION, Kind.OTHER, Kind.COLLECTIVE)
    before = 0.0
    for at_us, change, kind in edges:
        present = next((k for k in order if running[k] > 0), None)
        if present is not None:
            spent[present] += at_us - before
        running[kind] += change
        before = at_us
    return spent


def period(names: Sequence[str]) -> int | None:
    """The number of kernels after which the whole sequence repeats exactly, three times or more.

    None: it does not. The shortest period by Knuth, Morris and Pratt's failure function.
    """
    size = len(names)
    if size < 3:
        return None
    border = [0] * size
    matched = 0
    for i in range(1, size):
        while matched and names[i] != names[matched]:
            matched = border[matched - 1]
        matched += names[i] == names[matched]
        border[i] = matched
    length = size - border[-1]
    return length if length * 3 <= size else None
