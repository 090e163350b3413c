"""The answer: which supported hypothesis comes first, the one sentence, and the two sentences under it."""

from collections.abc import Mapping

from agents.facts.bench import PROFILE
from agents.facts.p2p import P2P_READ
from agents.facts.workload import MODEL
from webapp.diagnosis.case import Bound, Case, Gate, GateState, Path, Verdict, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses, all_rungs
from webapp.diagnosis.hypothesis import Hypothesis, Severity
from webapp.diagnosis.naming import in_words
from webapp.diagnosis.wording import span, unless, why_no_clique

# The farthest a reader needs telling apart: a share is named by the next of these above it.
_FRACTIONS = (
    (0.05, "a twentieth"),
    (0.10, "a tenth"),
    (0.20, "a fifth"),
    (0.25, "a quarter"),
    (1 / 3, "a third"),
    (0.40, "two fifths"),
    (0.50, "half"),
    (2 / 3, "two thirds"),
    (0.75, "three quarters"),
)


def supported(verdicts: Mapping[str, Verdict]) -> tuple[Hypothesis, ...]:
    """The supported hypotheses by rank; a cause comes before its signs."""
    chosen = [h for h in all_hypotheses() if h.id in verdicts and verdicts[h.id].kind is VerdictKind.SUPPORTED]
    ranks = {h.id: float(h.rank) for h in chosen}
    for cause in chosen:
        ranks[cause.id] = min([cause.rank, *(ranks[sign] - 0.5 for sign in cause.causes if sign in ranks)])
    return tuple(sorted(chosen, key=lambda h: (ranks[h.id], h.id)))


def top_verdict(verdicts: Mapping[str, Verdict]) -> Hypothesis | None:
    """The hypothesis a reader should hear of first; None when none is supported."""
    return next(iter(supported(verdicts)), None)


def headline(case: Case) -> str:
    """What was read before the last change alone is not said as if it were of now."""
    text = _headline(case)
    if not case.facts.nothing_since:
        return text
    return f"Nothing was read since the last change. Before it: {text[0].lower()}{text[1:]}"


def _headline(case: Case) -> str:
    ranked = supported(case.verdicts)
    first = (h.answer for h in ranked if h.severity is not Severity.SLOW)
    return (
        next(first, "")
        or _profiled(case)
        or _where_time_goes(case)
        or next((h.answer for h in ranked), "")
        or _known(case)
    )


def _known(case: Case) -> str:
    """Without a speed to explain: what the driver says of the GPUs, or the gate that fails, if any."""
    if not any(_passes(case, "driver", path) for path in Path):
        headlines = {rung.id: rung.headline for rung in all_rungs()}
        failed = (headlines.get(g.gate, "") for g in case.ladder if g.state is GateState.FAIL)
        return next(filter(None, failed), _not_enough(case))
    checked = any(_passes(case, "delivered", path) for path in Path)
    rest = "the bytes arrive" if checked else "whether the bytes arrive was not checked"
    return f"The driver allows the GPUs to reach each other directly; {rest}."


def _not_enough(case: Case) -> str:
    """What is asked for is what the operator can say; a look at the guest is always wanted."""
    request = "" if case.facts.value(MODEL) else "say which model is served, and "
    request = request if case.bounds else "say what speed was observed, and "
    return f"Not enough evidence yet: {request}look at the guest."


def _passes(case: Case, name: str, path: Path) -> bool:
    gate = case.gate(name, path)
    return gate is not None and gate.state is GateState.PASS


def _profiled(case: Case) -> str:
    """The largest part of the step that a profile shows, and what the GPUs' refusal has to do with it."""
    profile = case.facts.value(PROFILE)
    if profile is None or profile.step_ms <= 0:
        return ""
    parts = {
        "Collectives between the GPUs, waiting included,": profile.nccl_ms,
        "Attention": profile.attention_ms,
        "The experts": profile.moe_ms,
        "Other kernels": profile.other_ms,
        "Gaps between kernels": profile.gaps_ms,
    }
    name, most = max(parts.items(), key=lambda part: part[1])
    text = f"{name} take {profile.share(most) * 100:.0f} % of the profiled step"
    text = text.replace("Attention take", "Attention takes")
    if _refused(case):
        nccl = profile.share(profile.nccl_ms)
        text += f"; the GPUs cannot reach each other directly, which explains at most {nccl * 100:.0f} %"
    return f"{text}."


def _where_time_goes(case: Case) -> str:
    refused, bound = _refused(case), case.single_stream
    known = bound is not None and bound.step_ms is not None
    if refused:
        return _refusal(bound)
    if known and bound and bound.comm_ms and bound.step_ms:
        limit = _at_most(bound.comm_ms[1] / bound.step_ms[0])
        return f"Communication between the GPUs explains {limit} of the step{_network(bound)}."
    if known and bound and bound.floor_ms and bound.unexplained_ms and bound.step_ms:
        if _mostly_unexplained(bound):
            return "Most of the step is unexplained: nothing measured so far says where the time goes."
        return "Where the time goes is not known yet: communication was not measured."
    return ""


def _refusal(bound: Bound | None) -> str:
    """Where most of the step has no explanation, that is the news, and the refusal comes after it."""
    cause = "The GPUs cannot reach each other directly"
    if not (bound and bound.comm_ms and bound.step_ms):
        return f"{cause}; how much of the step that explains is not known yet."
    if _mostly_unexplained(bound):
        cause = f"Most of the step is unexplained: t{cause[1:]}"
    share = _at_most(bound.comm_ms[1] / bound.step_ms[0])
    return f"{cause}, but that explains {share} of the step{_network(bound)}."


def _mostly_unexplained(bound: Bound) -> bool:
    left, step = bound.unexplained_ms, bound.step_ms
    return left is not None and step is not None and left[0] > step[0] / 2


def _network(bound: Bound) -> str:
    """Short, because the summary below says what was not read."""
    return " unless NCCL goes over the network" if bound.unless else ""


def summary(case: Case) -> str:
    """Two sentences: what the driver says and what it costs, then what is left and what to do."""
    first = _first(case)
    return f"{first} {_second(case)}".strip()


def _first(case: Case) -> str:
    refused, bound = _refused(case), case.single_stream
    supported = case.verdict("p2p_denied_no_clique") is VerdictKind.SUPPORTED
    why = "by its own policy"
    if supported:
        why = f"{why_no_clique(case.ladder)} the VM grants no clique"
    parts = []
    if refused:
        before = ", before the last change" if case.facts.is_past(P2P_READ) else ""
        refuses = "refused" if before else "refuses"
        parts.append(f"the driver {refuses} peer access ({refused.why.partition(':')[0]}{before}) {why}")
    if bound and bound.step_ms and bound.comm_ms:
        parts.append(
            f"communication is {span(bound.comm_ms)} of {span(bound.step_ms)} ms "
            f"({bound.known('comm_ms')}){unless(bound)}"
        )
    elif bound and bound.step_ms and bound.floor_ms:
        parts.append(
            f"a step takes {span(bound.step_ms)} ms, of which reading weights needs "
            f"{span(bound.floor_ms)} ms ({bound.known('floor_ms')})"
        )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _second(case: Case) -> str:
    bound = case.single_stream
    if bound is None:
        return "Give the observed speed and the model to see where a step’s time can go."
    if bound.unexplained_ms is None or bound.step_ms is None:
        missing = "; ".join(map(in_words, bound.missing[:2]))
        return f"Missing: {missing}." if missing else ""
    if bound.unexplained_ms[0] > 0.1 * bound.step_ms[0]:
        out_of_reach = any(b.goal_reachable_by_p2p is False for b in case.bounds)
        goal = ", and P2P alone does not reach the goal" if out_of_reach else ""
        return (
            f"At least {span((bound.unexplained_ms[0],) * 2)} ms is unexplained{goal}: profile the engine "
            "before changing the host."
        )
    return "What is left may be nothing; a profile of the engine tells."


def _refused(case: Case) -> Gate | None:
    """The driver's refusal; not when another path (NVLink) is open."""
    gates = [case.gate("driver", path) for path in Path]
    if any(gate and gate.state is GateState.PASS for gate in gates):
        return None
    return next((gate for gate in gates if gate and gate.state is GateState.FAIL), None)


def _at_most(share: float) -> str:
    name = next((text for limit, text in _FRACTIONS if share <= limit), None)
    return f"at most {name}" if name else "perhaps most"
