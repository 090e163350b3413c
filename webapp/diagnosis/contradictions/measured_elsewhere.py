"""A benchmark's header names other cards than the guest has: it was run on another machine.

Source: our programs write torch's device names; the driver lists the same names (nvidia-smi).
"""

from __future__ import annotations

from collections.abc import Iterator

from agents.facts.gpu import GPUS
from webapp.diagnosis.case import Bound
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.measured_on import elsewhere
from webapp.diagnosis.rule import Clash, Rule


def check(facts: Facts, bounds: tuple[Bound, ...]) -> Iterator[Clash]:
    listed = ", ".join(sorted({gpu.name for gpu in facts.value(GPUS) or () if gpu.name}))
    for fact, names in elsewhere(facts):
        text = f"{fact.title}: measured on {', '.join(sorted(names))}, but the guest has {listed}"
        yield text, facts.refs(fact, GPUS)


rule = Rule(__name__, check)
