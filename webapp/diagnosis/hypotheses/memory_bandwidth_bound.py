"""Reading weights from GPU memory fills the step: the bound's floor against the measured step.

Source: roofline model, Williams et al. 2009; public bandwidths of the GPUs.
"""

from agents.facts.workload import MODEL, OBSERVED
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.wording import span

MOST = 0.6
LITTLE = 0.25


def assess(case: Case) -> Verdict:
    bound = case.single_stream
    if bound is None or not bound.floor_ms or not bound.step_ms or not bound.step_ms[0]:
        missing = bound.missing if bound else probes_for(case.facts, OBSERVED, MODEL)
        return Verdict(VerdictKind.OPEN, missing=missing)
    low = bound.floor_ms[0] / bound.step_ms[1]
    high = min(1.0, bound.floor_ms[1] / bound.step_ms[0])
    text = (
        f"at concurrency {bound.concurrency} the weight reads take {span(bound.floor_ms)} ms of a "
        f"step of {span(bound.step_ms)} ms{_as_said(case)}"
    )
    refs = bound.evidence or case.facts.refs(OBSERVED, MODEL)
    claim = Claim(text, refs, (low, high), bound.basis.get("floor_ms", Basis.ESTIMATED))
    if low >= MOST:
        return Verdict(VerdictKind.SUPPORTED, (claim,), share_ms=bound.floor_ms)
    if high <= LITTLE:
        return Verdict(VerdictKind.REFUTED, (), (claim,), share_ms=bound.floor_ms)
    return Verdict(VerdictKind.OPEN, (claim,), (), ("bench.memory",), bound.floor_ms)


def _as_said(case: Case) -> str:
    """The figure that the verdict rests on, because it was typed and nothing here measured it."""
    model = case.facts.value(MODEL)
    read = model.active_weight_bytes if model else None
    if read is None:
        return ""
    return f", if a token reads {span((read[0] / 1e9, read[1] / 1e9))} GB of weights, as said"


hypothesis = Hypothesis(
    __name__,
    "Reading weights from GPU memory fills the step.",
    assess,
    "Reading the weights of “Model” at the measured or published speed (“Memory of each GPU”) takes "
    f"at most {LITTLE * 100:.0f} % of the step in “Observed speed”.",
    rank=420,
    plain="Most of the time goes into reading the model from memory, which is what this hardware costs.",
    decided_by=("engine_profile",),
    first_guess=2,
)
