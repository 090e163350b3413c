"""The GPUs' arithmetic fills the step.

Utilisation is the share of time in which any kernel ran, so it never shows this. A profile does, together
with a step that grows with the tokens in it.

Source: NVML, nvmlUtilization_t.
"""

from dataclasses import dataclass

from agents.facts.bench import PROFILE
from agents.facts.gpu import GPUS
from agents.facts.workload import OBSERVED
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim, Range
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.gpus import Load
from webapp.diagnosis.situation.own_machine import unnamed_cards
from webapp.diagnosis.wording import span

LINEAR = 0.5
"""A step that grows by less than half as much as its tokens has room for more arithmetic."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Factors between two operating points: tokens in the step, and the step's time."""

    tokens: float
    step: Range

    @property
    def linear(self) -> bool:
        return self.step[0] >= LINEAR * self.tokens


def assess(case: Case) -> Verdict:
    facts, profile = case.facts, case.facts.value(PROFILE)
    for_: list[Claim] = []
    against = _utilisation_says_nothing(case)
    growth = _growth(case)
    if growth is not None:
        text = f"{growth.tokens:g} times the tokens take {span(growth.step)} times the step"
        claim = Claim(text, facts.refs(OBSERVED), growth.step, Basis.ESTIMATED)
        (for_ if growth.linear else against).append(claim)
    if profile is None:
        return Verdict(VerdictKind.OPEN, tuple(for_), tuple(against), probes_for(facts, PROFILE))
    share = profile.share(profile.kernels_ms)
    text = f"attention, expert and other kernels take {share * 100:.0f} % of the profiled step"
    text += unnamed_cards(facts, PROFILE)
    (for_ if share > 0.5 else against).append(Claim(text, facts.refs(PROFILE), (share, share), Basis.MEASURED))
    kind = VerdictKind.REFUTED if share <= 0.5 else VerdictKind.OPEN
    if share > 0.5 and growth is not None and growth.linear:
        kind = VerdictKind.SUPPORTED
    return Verdict(kind, tuple(for_), tuple(against), (), (0.0, profile.kernels_ms))


def _utilisation_says_nothing(case: Case) -> list[Claim]:
    seen = case.situation.exception(_busy)
    if not seen or seen.power_share is None:
        return []
    text = (
        f"utilisation of {seen.busy_percent} % means that a kernel was running, and "
        f"{seen.power_share * 100:.0f} % of the power limit is usual for decode; neither shows "
        "full arithmetic"
    )
    return [Claim(text, case.facts.refs(GPUS), None, Basis.LITERATURE)]


def _busy(situation: Situation) -> Load | None:
    seen = situation.load
    return seen if seen.busy and seen.power_share is not None else None


def _growth(case: Case) -> Growth | None:
    """From the lowest to the highest observed concurrency."""
    if len({bound.concurrency for bound in case.bounds if bound.step_ms}) < 2:
        return None
    timed = sorted((concurrency, step) for concurrency, step in case.steps if step)
    (few, (low, high)), (many, (low_after, high_after)) = timed[0], timed[-1]
    if not low or not high:
        return None
    return Growth(many / few, (low_after / high, high_after / low))


hypothesis = Hypothesis(
    __name__,
    "Arithmetic on the GPUs fills the step.",
    assess,
    "“The engine’s own profile of a step” shows attention, expert and other kernels in at most half "
    "of it; no utilisation and no power does.",
    rank=430,
    plain="Most of the time goes into the GPUs’ own arithmetic.",
    decided_by=("engine_profile",),
    first_guess=1,
)
