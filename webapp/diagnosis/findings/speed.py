"""What the observed speed and the first counters say, and what they do not.

Source: NVML, nvmlUtilization_t; the bound.
"""

from agents.facts.gpu import GPUS
from agents.facts.workload import GOAL, OBSERVED, Observed
from webapp.diagnosis.case import Bound, Case, Finding
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.naming import in_words
from webapp.diagnosis.option import because
from webapp.diagnosis.situation.gpus import BUSY_PERCENT
from webapp.diagnosis.wording import most, span, typed_range, unless

NORMAL_DECODE = (0.35, 0.70)
NVML = "NVML documentation, nvmlUtilization_t"


def utilisation(case: Case) -> Finding | None:
    """100 % busy at half the power is what healthy decode looks like."""
    seen, refs = case.situation.load, case.facts.refs(GPUS)
    if seen.busy_percent is None or seen.busy_percent < BUSY_PERCENT:
        return None
    text = f"utilisation of {seen.busy_percent} % means that a kernel is running, not that it computes"
    claims = [because(text, NVML, refs)]
    share = seen.power_share
    if share is not None and NORMAL_DECODE[0] <= share <= NORMAL_DECODE[1]:
        text = f"power at {share * 100:.0f} % of the limit is normal while tokens are generated"
        claims.append(because(text, "public measurements of decode, 300 W of 600 W a card", refs, (share, share)))
    memory = [gpu.memory_utilisation_percent for gpu in case.facts.value(GPUS) or ()]
    read = [value for value in memory if value is not None]
    if read:
        text = (
            f"utilization.memory of {min(read)}–{max(read)} % is the share of time in which memory was "
            "accessed, not a share of its bandwidth"
        )
        claims.append(because(text, NVML, refs))
    return Finding("utilisation_is_not_work", "info", tuple(claims))


def total_is_not_output(case: Case) -> Finding | None:
    both = [
        (row.concurrency, row.total_tokens_per_s, row.output_tokens_per_s)
        for row in case.facts.value(OBSERVED) or ()
        if row.total_tokens_per_s and row.output_tokens_per_s
        if row.total_tokens_per_s[1] > row.output_tokens_per_s[1]
    ]
    refs = case.facts.refs(OBSERVED)
    claims = tuple(
        Claim(
            f"at concurrency {concurrency}, {typed_range(total)} tok/s count input and output; output was "
            f"{typed_range(output)} tok/s, and only that is the speed",
            refs,
            output,
            Basis.MEASURED,
        )
        for concurrency, total, output in both
    )
    return Finding("total_is_not_output", "info", claims) if claims else None


def unexplained(case: Case) -> Finding | None:
    """More than half of a single stream's step is neither weight reads nor communication."""
    bound = case.bound_with("step_ms", "unexplained_ms")
    if not (bound and bound.step_ms and bound.unexplained_ms):
        return None
    low, high = bound.unexplained_ms
    if low < bound.step_ms[0] / 2:
        return None
    text = (
        f"most of the step is unexplained: {span((low, high))} ms of {span(bound.step_ms)} ms at "
        f"concurrency {bound.concurrency}; the engine’s profile is the next test"
    )
    claims = [Claim(text, bound.evidence, (low, high), Basis.ESTIMATED)]
    if bound.comm_ms is None and bound.missing:
        missing = "; ".join(map(in_words, bound.missing))
        claims.append(Claim(f"not bounded yet: {missing}", bound.evidence))
    return Finding("most_is_unexplained", "warning", tuple(claims))


def goal_by_p2p(case: Case) -> Finding | None:
    claims = [claim for bound in case.every_bound if (claim := _goal(case, bound))]
    return Finding("goal_not_by_p2p_alone", "warning", tuple(claims)) if claims else None


def _goal(case: Case, bound: Bound) -> Claim | None:
    reachable = case.reaches_goal(bound)
    goal, observed = case.facts.value(GOAL), _observed(case, bound.concurrency)
    gain = bound.max_gain_remove_comm
    if goal is None or observed is None or gain is None or reachable is not False:
        return None
    single = bound.concurrency == 1
    target = goal.single_stream_tokens_per_s if single else goal.total_tokens_per_s
    text = (
        f"{target:g} tok/s at concurrency {bound.concurrency} is not reachable by P2P alone: removing all "
        f"communication gains at most {most(gain)}, P2P less{unless(bound)}"
    )
    return Claim(text, bound.evidence, gain, Basis.ESTIMATED)


def transport_unseen(case: Case) -> Finding | None:
    """The bound presumes shared memory until a log shows the transport."""
    presumed = [text for bound in case.every_bound for text in bound.assumes if "NCCL log" in text]
    if not presumed:
        return None
    bound = case.every_bound[0]
    text = f"the bound {presumed[0]}: over the network it would not hold"
    return Finding("transport_unseen", "info", (Claim(text, bound.evidence),))


def _observed(case: Case, concurrency: int) -> Observed | None:
    rows = case.facts.value(OBSERVED) or ()
    return next((row for row in rows if row.concurrency == concurrency), None)


RULES = (utilisation, total_is_not_output, unexplained, goal_by_p2p, transport_unseen)
