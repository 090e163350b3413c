"""A layout, used or planned, whose weights and a small reserve are more than its GPUs hold.

The reserve is 5 % for contexts and communication buffers; engines keep more and want room for a cache
(vLLM's gpu_memory_utilization is 0.9 by default).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agents.facts.gpu import GPUS
from agents.facts.workload import MODEL, NOTES, PARALLELISM
from webapp.diagnosis.case import Bound
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rule import Clash, Rule

_LAYOUT = re.compile(
    r"\bTP\s?=?\s?(\d{1,2})(?:\s*(?:\+|x|×|,|and|/)?\s*PP\s?=?\s?(\d{1,2}))?", re.I
)

RESERVE = 0.05


def check(facts: Facts, bounds: tuple[Bound, ...]) -> Iterator[Clash]:
    model = facts.value(MODEL)
    vram = [gpu.vram_mib for gpu in facts.value(GPUS) or () if gpu.vram_mib]
    if not model or not model.weight_bytes or not vram:
        return
    room_gb = min(vram) * 2**20 / 1e9 * (1 - RESERVE)
    for tp, pp in sorted(_layouts(facts)):
        each_gb = model.weight_bytes[0] / 1e9 / (tp * pp)
        if each_gb > room_gb:
            name = f"TP{tp}" + (f"+PP{pp}" if pp > 1 else "")
            text = (
                f"{name} needs at least {each_gb:.0f} GB of weights on each GPU, which has "
                f"{room_gb:.0f} GB for weights and cache"
            )
            yield text, facts.refs(MODEL, GPUS, PARALLELISM, NOTES)


def _layouts(facts: Facts) -> set[tuple[int, int]]:
    """Tensor and pipeline degrees in use, and those the operator writes about."""
    used = facts.value(PARALLELISM)
    found = {(max(1, used.tp), max(1, used.pp))} if used else set()
    for match in _LAYOUT.finditer(facts.value(NOTES) or ""):
        found.add((max(1, int(match[1])), max(1, int(match[2] or 1))))
    return found


rule = Rule(__name__, check)
