"""A layout, used or planned, whose weights and a reserve do not fit the memory of its GPUs.

Serving engines hold back about a tenth: by default vLLM uses 0.9 of the memory, SGLang 0.85 to 0.9.

Source: vLLM, --gpu-memory-utilization; SGLang, --mem-fraction-static.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agents.facts.gpu import GPUS
from agents.facts.workload import MODEL, NOTES, PARALLELISM
from webapp.diagnosis.case import Bound
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.memory_fit import fit
from webapp.diagnosis.rule import Clash, Rule

_LAYOUT = re.compile(r"\bTP\s?=?\s?(\d{1,2})(?:\s*(?:\+|x|×|,|and|/)?\s*PP\s?=?\s?(\d{1,2}))?", re.I)


def check(facts: Facts, bounds: tuple[Bound, ...]) -> Iterator[Clash]:
    for tp, pp in sorted(_layouts(facts)):
        found = fit(facts, tp * pp)
        if found.fits is False:
            name = f"TP{tp}" + (f"+PP{pp}" if pp > 1 else "")
            yield f"{name}: {found.why}", facts.refs(MODEL, GPUS, PARALLELISM, NOTES)


def _layouts(facts: Facts) -> set[tuple[int, int]]:
    """Tensor and pipeline degrees in use, and those the operator writes about."""
    used = facts.value(PARALLELISM)
    found = {(max(1, used.tp), max(1, used.pp))} if used else set()
    for match in _LAYOUT.finditer(facts.value(NOTES) or ""):
        found.add((max(1, int(match[1])), max(1, int(match[2] or 1))))
    return found


rule = Rule(__name__, "A layout that does not fit the memory", check)
