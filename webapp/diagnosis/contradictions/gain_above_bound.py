"""A gain that is hoped for is larger than the bound on all communication allows.

A goal that P2P alone does not reach contradicts nothing: that is a finding.

Source: Amdahl's law, 1967.
"""

import re
from collections.abc import Iterator

from agents.facts.workload import NOTES
from webapp.diagnosis.case import Case
from webapp.diagnosis.rule import Clash, Rule
from webapp.diagnosis.wording import most, unless

_TIMES = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)\s*[x×]?(?:\s*(?:-|–|/|to|or)\s*(\d+(?:\.\d+)?))?\s*[x×]"
    r"(?![\w×]|\s*(?:\d|RTX\b|GPUs?\b|NVIDIA\b|PRO\b|GeForce\b|[AHBL]\d|Gen\d|cards?\b))",
    re.I,
)
_WORDS = {"double": 2.0, "triple": 3.0}
_WORD = re.compile(r"\b(double|triple)\b", re.I)
BELIEVABLE = (1.05, 100.0)


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    bound = min(case.bounds, key=lambda b: b.concurrency, default=None)
    if bound is None or not bound.max_gain_remove_comm:
        return
    gain = bound.max_gain_remove_comm
    hoped = claimed_gain(facts.value(NOTES) or "")
    if hoped and hoped > gain[1]:
        text = (
            f"a gain of {hoped:g} × is hoped for; removing all communication at concurrency "
            f"{bound.concurrency} gains at most {most(gain)}{unless(bound)}"
        )
        facts.reads.add(bound.reads)
        yield text, facts.refs(NOTES) + bound.evidence


def claimed_gain(text: str) -> float | None:
    """The smallest factor a text speaks of: 2 for "2x to 3x" and for "double or triple"."""
    factors = [float(match[1]) for match in _TIMES.finditer(text)]
    factors += [_WORDS[match[1].lower()] for match in _WORD.finditer(text)]
    return min((f for f in factors if BELIEVABLE[0] <= f <= BELIEVABLE[1]), default=None)


rule = Rule(__name__, "A hoped-for gain above the bound", check)
