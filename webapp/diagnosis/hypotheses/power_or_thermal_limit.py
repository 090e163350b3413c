"""The GPUs are held back by their power limit or by heat.

Source: nvidia-smi manual, power limits and slowdown temperatures.
"""

from __future__ import annotations

from agents.facts.gpu import GPUS
from webapp.diagnosis.asking import asks
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.load import load

AT_LIMIT = 0.97
FAR_BELOW = 0.8
HOT_CELSIUS = 85
"""Slowdown of data-center cards starts from 85–90 °C (nvidia-smi -q, GPU Target and Slowdown Temp)."""
THROTTLED_CLOCK = 0.7


def assess(case: Case) -> Verdict:
    seen, refs = load(case.facts), case.facts.refs(GPUS)
    if not seen.busy:
        missing = asks(case.facts, GPUS) or ("bench.telemetry",)
        return Verdict(VerdictKind.OPEN, missing=missing)
    for_: list[Claim] = []
    against: list[Claim] = []
    if seen.power_share is not None:
        text = f"under load the GPUs draw up to {seen.power_share:.0%} of their power limit"
        claim = Claim(text, refs, (seen.power_share, seen.power_share), Basis.MEASURED)
        (for_ if seen.power_share >= AT_LIMIT else against).append(claim)
    hot = seen.temperature_celsius is not None and seen.temperature_celsius >= HOT_CELSIUS
    slow = seen.clock_share is not None and seen.clock_share < THROTTLED_CLOCK
    if hot and slow:
        text = f"under load a GPU is at {seen.temperature_celsius} °C with lowered clocks"
        for_.append(Claim(text, refs, None, Basis.MEASURED))
    if for_:
        return Verdict(VerdictKind.SUPPORTED, tuple(for_), tuple(against))
    cool = seen.power_share is not None and seen.power_share <= FAR_BELOW and not hot
    kind = VerdictKind.REFUTED if cool else VerdictKind.OPEN
    return Verdict(kind, (), tuple(against), () if cool else ("bench.telemetry",))


hypothesis = Hypothesis(__name__, "The power limit or heat holds the GPUs back.", assess)
