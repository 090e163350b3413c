"""The engine hangs in a collective: kernels spin, power is low, no token comes out.

Source: NVML, nvmlUtilization_t; public reports of RTX PRO 6000 machines, 2026.
"""

from agents.facts.bench import ALLREDUCE, SERVING
from agents.facts.gpu import GPUS
from agents.facts.workload import OBSERVED
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.gates.collective import Outcome, outcome
from webapp.diagnosis.hypothesis import Hypothesis, Severity
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.situation import Situation

SPINNING_POWER = 0.25
"""Hung 600 W cards were seen at 85–140 W with 100 % utilisation (public RTX PRO 6000 reports)."""


def assess(case: Case) -> Verdict:
    facts, flow = case.facts, case.situation.tokens_flow
    stuck = _collective_hung(facts)
    if stuck and not flow:
        return Verdict(VerdictKind.SUPPORTED, stuck)
    if flow:
        text = "tokens come out, so the engine does not hang"
        if stuck:
            text = "tokens came out when the speed was observed"
        claim = measured_claim(text, facts.refs(OBSERVED, SERVING))
        return Verdict(VerdictKind.OPEN if stuck else VerdictKind.REFUTED, stuck, (claim,))
    spinning = _spinning(case.situation)
    missing = probes_for(facts, GPUS, OBSERVED)
    if spinning and flow is False:
        silent = measured_claim("no tokens come out", facts.refs(OBSERVED, SERVING))
        return Verdict(VerdictKind.SUPPORTED, (*spinning, silent))
    return Verdict(VerdictKind.OPEN, spinning, (), missing)


def _spinning(situation: Situation) -> tuple[Claim, ...]:
    seen = situation.load
    if not seen.busy or seen.power_share is None or seen.power_share >= SPINNING_POWER:
        return ()
    text = (
        f"utilisation is {seen.busy_percent} % at {seen.power_share * 100:.0f} % of the power limit in one "
        "snapshot: kernels that wait"
    )
    return (measured_claim(text, situation.facts.refs(GPUS)),)


def _collective_hung(facts: Facts) -> tuple[Claim, ...]:
    """By the newest of those with P2P and of those without: one that came back since is the answer."""
    in_time = sorted(facts.all(ALLREDUCE), key=lambda s: s.when)
    newest = {value.p2p: (s, value) for s in in_time if (value := s.reading.value)}
    text = "an all-reduce on this machine did not come back"
    return tuple(measured_claim(text, s.refs) for s, value in newest.values() if outcome(value) is Outcome.HANG)


hypothesis = Hypothesis(
    __name__,
    "The engine hangs in a collective.",
    assess,
    "Tokens come out (“Observed speed” or “Load on the serving engine”), and nothing hung in "
    "“All-reduce, with P2P and without”.",
    rank=120,
    plain="The GPUs wait for each other and nothing comes back.",
    headline="The GPUs wait for each other and nothing comes back: this is a hang.",
    severity=Severity.BROKEN,
    decided_by=("stack_dump",),
)
