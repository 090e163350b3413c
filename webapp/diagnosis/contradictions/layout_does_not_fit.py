"""A layout, used or planned, whose weights and a reserve do not fit the memory of its GPUs.

Serving engines hold back about a tenth: by default vLLM uses 0.9 of the memory, SGLang 0.85 to 0.9.

Source: vLLM, --gpu-memory-utilization; SGLang, --mem-fraction-static.
"""

import re
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from agents.facts import Fact
from agents.facts.gpu import GPUS
from agents.facts.workload import MODEL, NOTES, PARALLELISM
from webapp.diagnosis.case import Case
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.memory_fit import too_large
from webapp.diagnosis.rule import Clash, Rule

_LAYOUT = re.compile(r"\bTP\s?=?\s?(\d{1,2})(?:\s*(?:\+|x|×|,|and|/)?\s*PP\s?=?\s?(\d{1,2}))?", re.I)


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    for (tp, pp), named_in in sorted(_layouts(facts).items(), key=itemgetter(0)):
        shortage = facts.exception(partial(too_large, gpus=tp * pp))
        if shortage:
            facts.value(named_in)
            name = f"TP{tp}" + (f"+PP{pp}" if pp > 1 else "")
            yield f"{name}: {shortage.why}", facts.refs(MODEL, GPUS, named_in)


def _layouts(facts: Facts) -> dict[tuple[int, int], Fact[Any]]:
    """Tensor and pipeline degrees in use, and those the operator writes about, with the fact that names them."""
    named: dict[tuple[int, int], Fact[Any]] = {}
    for match in _LAYOUT.finditer(facts.peek(NOTES) or ""):
        named[max(1, int(match[1])), max(1, int(match[2] or 1))] = NOTES
    used = facts.peek(PARALLELISM)
    return named | ({(max(1, used.tp), max(1, used.pp)): PARALLELISM} if used else {})


rule = Rule(__name__, "A layout that does not fit the memory", check)
