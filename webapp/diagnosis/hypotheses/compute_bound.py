"""The GPUs' arithmetic fills the step.

Utilisation is the share of time in which any kernel ran (NVML, nvmlUtilization_t), so it never shows
this. A profile does, together with a step that grows with the tokens in it.
"""

from __future__ import annotations

from agents.facts.bench import PROFILE
from agents.facts.gpu import GPUS
from agents.facts.workload import OBSERVED
from webapp.diagnosis.asking import asks
from webapp.diagnosis.case import Bound, Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.load import load

LINEAR = 0.5
"""A step that grows by less than half as much as its tokens has room for more arithmetic."""


def assess(case: Case) -> Verdict:
    facts, profile = case.facts, case.facts.value(PROFILE)
    for_: list[Claim] = []
    against = _utilisation_says_nothing(case)
    growth = _growth(case.bounds)
    if growth is not None:
        text = f"the step grows by {growth:.0%} of what its tokens grow by"
        claim = Claim(text, facts.refs(OBSERVED), (growth, growth), Basis.ESTIMATED)
        (for_ if growth >= LINEAR else against).append(claim)
    if profile is None:
        missing = asks(facts, PROFILE)
        return Verdict(VerdictKind.OPEN, tuple(for_), tuple(against), missing)
    share = profile.share(profile.kernels_ms)
    text = f"attention, expert and other kernels take {share:.0%} of the profiled step"
    claim = Claim(text, facts.refs(PROFILE), (share, share), Basis.MEASURED)
    (for_ if share > 0.5 else against).append(claim)
    kind = VerdictKind.REFUTED if share <= 0.5 else VerdictKind.OPEN
    if share > 0.5 and growth is not None and growth >= LINEAR:
        kind = VerdictKind.SUPPORTED
    return Verdict(kind, tuple(for_), tuple(against), (), (0.0, profile.kernels_ms))


def _utilisation_says_nothing(case: Case) -> list[Claim]:
    seen = load(case.facts)
    if not seen.busy or seen.power_share is None:
        return []
    text = (
        f"utilisation of {seen.busy_percent} % means that a kernel was running, and "
        f"{seen.power_share:.0%} of the power limit is usual for decode; neither shows full arithmetic"
    )
    return [Claim(text, case.facts.refs(GPUS), None, Basis.LITERATURE)]


def _growth(bounds: tuple[Bound, ...]) -> float | None:
    """Step time's growth over token growth from the lowest to the highest concurrency; 1 is linear."""
    timed = sorted((b for b in bounds if b.step_ms), key=lambda b: b.concurrency)
    if len(timed) < 2 or not timed[0].step_ms or not timed[-1].step_ms:
        return None
    tokens = timed[-1].concurrency / timed[0].concurrency
    return timed[-1].step_ms[1] / timed[0].step_ms[0] / tokens if timed[0].step_ms[0] else None


hypothesis = Hypothesis(__name__, "Arithmetic on the GPUs fills the step.", assess)
