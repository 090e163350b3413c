"""Large collectives fill the step: the bound's communication at the highest concurrency.

Below 256 KiB a message's time is latency on every path measured here, so a case whose largest message
is smaller refutes it.

Source: NVIDIA/nccl-tests, PERFORMANCE.md, for the volume of a ring; copies timed on two H200, 2026.
"""

from agents.facts.bench import ALLREDUCE, COPY, PROFILE
from agents.facts.workload import MODEL, OBSERVED
from webapp.diagnosis.case import Bound, Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.wording import percent

MUCH = 0.3
LITTLE = 0.1
LARGE_BYTES = 256 * 1024


def assess(case: Case) -> Verdict:
    facts, size = case.facts, _message_bytes(case)
    missing = probes_for(facts, OBSERVED, MODEL, COPY, ALLREDUCE)
    if size is None:
        return Verdict(VerdictKind.OPEN, missing=missing)
    if size < LARGE_BYTES:
        text = f"the largest message is {size / 1024:.0f} KiB: its time is latency, not bandwidth"
        return refuted(Claim(text, facts.refs(MODEL, OBSERVED), (size, size), Basis.ESTIMATED))
    highest = max(concurrency for concurrency, _ in case.steps)
    bound = case.bound_with("comm_ms", "step_ms", concurrency=highest)
    if bound is None and not missing:
        missing = next(b.missing for b in case.every_bound if b.concurrency == highest)
    if bound is None or not bound.comm_ms or not bound.step_ms or not bound.step_ms[0]:
        return Verdict(VerdictKind.OPEN, missing=missing)
    low, high = bound.comm_ms[0] / bound.step_ms[1], bound.comm_ms[1] / bound.step_ms[0]
    claim = _claim(case, bound, size, (low, min(1.0, high)))
    if low >= MUCH:
        return Verdict(VerdictKind.SUPPORTED, (claim,), (), missing)
    if high <= LITTLE:
        return Verdict(VerdictKind.REFUTED, (), (claim,), missing)
    return Verdict(VerdictKind.OPEN, (claim,), (), missing or probes_for(facts, PROFILE))


def _claim(case: Case, bound: Bound, size: float, share: tuple[float, float]) -> Claim:
    text = f"at concurrency {bound.concurrency} messages of {size / 1024:.0f} KiB take {percent(share)} of the step"
    return Claim(text, bound.evidence or case.facts.refs(OBSERVED, COPY, ALLREDUCE), share, Basis.ESTIMATED)


def _message_bytes(case: Case) -> float | None:
    """Tokens in a step × hidden × activation bytes, at the highest concurrency."""
    model = case.facts.value(MODEL)
    concurrency = max((concurrency for concurrency, _ in case.steps), default=None)
    if concurrency is None or not model or not model.hidden_size:
        return None
    tokens = concurrency * ((model.draft_tokens or 0) + 1)
    return float(tokens * model.hidden_size * (model.activation_bytes or 2))


hypothesis = Hypothesis(
    __name__,
    "Large collectives fill the step.",
    assess,
    f"The largest message (“Model”) is below {LARGE_BYTES // 1024} KiB, or “All-reduce, with P2P and "
    f"without” or “Copies between the GPUs” bounds messages to {LITTLE * 100:.0f} % of the step.",
    rank=640,
    plain="Much of the time goes into moving large amounts of data between the GPUs.",
    decided_by=("engine_profile", "copy_sweep", "all_reduce_graph"),
    first_guess=4,
)
