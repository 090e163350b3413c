"""Many small collectives fill the step: the bound's communication at the lowest concurrency.

A profile's NCCL time decides, but NCCL kernels also spin while they wait for a slower GPU.

Source: NCCL 2.30.7, src/graph/tuning.cc, for the steps of a ring; Megatron-LM, Shoeybi et al. 2019.
"""

from agents.facts.bench import ALLREDUCE, COPY, PROFILE
from agents.facts.workload import OBSERVED
from webapp.diagnosis.case import Bound, Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.situation.own_machine import unnamed_cards
from webapp.diagnosis.wording import most, percent, span, unless

MUCH = 0.3
LITTLE = 0.1


def assess(case: Case) -> Verdict:
    facts, profile = case.facts, case.facts.value(PROFILE)
    if profile is not None:
        share = profile.share(profile.nccl_ms)
        text = f"collectives take {share * 100:.0f} % of the profiled step, waiting included"
        text += unnamed_cards(facts, PROFILE)
        claim = Claim(text, facts.refs(PROFILE), (share, share), Basis.MEASURED)
        return _verdict(claim, share, share, (profile.nccl_ms, profile.nccl_ms), ())
    bound = case.bound_with("comm_ms", "step_ms")
    if bound is None or not bound.comm_ms or not bound.step_ms or not bound.step_ms[0]:
        return Verdict(VerdictKind.OPEN, missing=probes_for(facts, OBSERVED, COPY, ALLREDUCE, PROFILE))
    low = bound.comm_ms[0] / bound.step_ms[1]
    high = min(1.0, bound.comm_ms[1] / bound.step_ms[0])
    refs = bound.evidence or facts.refs(OBSERVED, COPY, ALLREDUCE)
    claim = Claim(_text(bound, low, high), refs, (low, high), Basis.ESTIMATED)
    return _verdict(claim, low, high, bound.comm_ms, probes_for(facts, PROFILE, ALLREDUCE))


def _text(bound: Bound, low: float, high: float) -> str:
    comm = bound.comm_ms or (0.0, 0.0)
    text = f"at concurrency {bound.concurrency} communication takes {span(comm)} ms, {percent((low, high))} of the step"
    gain = bound.max_gain_remove_comm
    return text + (f"; removing all of it gains at most {most(gain)}{unless(bound)}" if gain else "")


def _verdict(claim: Claim, low: float, high: float, share_ms: tuple[float, float], missing: tuple[str, ...]) -> Verdict:
    if low >= MUCH:
        return Verdict(VerdictKind.SUPPORTED, (claim,), (), missing, share_ms)
    if high <= LITTLE:
        return Verdict(VerdictKind.REFUTED, (), (claim,), missing, share_ms)
    return Verdict(VerdictKind.OPEN, (claim,), (), missing, share_ms)


hypothesis = Hypothesis(
    __name__,
    "Many small collectives fill the step.",
    assess,
    f"“The engine’s own profile of a step” shows collectives in at most {LITTLE * 100:.0f} % of it; "
    "without one, “All-reduce, with P2P and without” or “Copies between the GPUs” bounds them to that.",
    rank=630,
    plain="Much of the time goes into many small exchanges between the GPUs.",
    decided_by=("engine_profile", "copy_sweep", "nccl_log", "all_reduce_graph"),
    first_guess=3,
)
