"""One diagnosis in words: a paragraph for a manager, a page for an engineer.

Both say only what the diagnosis holds: figures with their basis, what is not known as not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from webapp.diagnosis.case import Actor, Bound, Gate, GateState, NextTest, OptionStatus, Restart, Verdict, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.naming import ACTORS, PATHS, RESTARTS, in_words
from webapp.diagnosis.provenance import Provenance, provenance
from webapp.diagnosis.ranking import supported, top_verdict
from webapp.diagnosis.wording import factor, load, most, span, unless, why_no_clique

__all__ = ["Provenance", "Section", "for_a_manager", "for_an_engineer", "provenance"]


@dataclass(frozen=True, slots=True)
class Section:
    """claims: statements with their evidence. notes: what is not known or to be done; no statements
    about causes."""

    title: str
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()


# What each supported hypothesis means to somebody who does not know the field's words.
_PLAIN = {
    "hang": "The GPUs wait for each other and nothing comes back.",
    "false_p2p_grant": "Direct access between the GPUs is switched on and cannot be relied on; it "
    "should be switched off before anything else.",
    "gpu_lost": "At least one GPU that should be there does not answer.",
    "nvlink_fabric_down": "The direct links between the GPUs are there but not set up.",
    "bar_space_shortage": "The machine does not give every GPU the address space that it needs.",
    "nccl_on_network": "The GPUs of one machine talk to each other over the network, by a wrong setting.",
    "pcie_link_degraded": "At least one GPU’s connection runs slower than it could.",
    "launch_bound": "The GPUs spend much of their time waiting for the processor to give them work.",
    "memory_bandwidth_bound": "Most of the time goes into reading the model from memory, which is what "
    "this hardware costs.",
    "compute_bound": "Most of the time goes into the GPUs’ own arithmetic.",
    "power_or_thermal_limit": "The GPUs are held back by their power limit or by heat.",
    "p2p_unsupported_gpu": "These GPUs are not allowed direct access to each other by their maker.",
    "kvm_hidden": "A setting hides from the GPUs’ driver that it runs in a virtual machine.",
    "p2p_denied_no_clique": "The driver refuses the GPUs direct access to each other, BECAUSE the "
    "virtual machine does not permit it.",
    "p2p_denied_other": "The driver refuses the GPUs direct access to each other.",
    "nccl_level_too_low": "The GPUs may reach each other directly, and a setting keeps the software from using it.",
    "acs_detour": "Data between the GPUs takes a longer way through the machine than it needs to.",
    "communication_latency_bound": "Much of the time goes into many small exchanges between the GPUs.",
    "communication_bandwidth_bound": "Much of the time goes into moving large amounts of data between the GPUs.",
    "numa_misplacement": "Memory that the GPUs share lies far from some of them.",
}

# What each test does, in the same words.
_DOES = {
    "engine_profile": "record where the serving software spends its time",
    "p2p_matrix": "ask the driver whether the GPUs may reach each other",
    "copy_sweep": "time copies between two GPUs",
    "nccl_log": "read from the software’s own log how the GPUs talk to each other",
    "clique_capability": "look in the virtual machine whether direct access is permitted",
    "all_reduce_graph": "time the exchanges between all the GPUs",
    "running_qemu_line": "look on the host how the virtual machine was started",
    "delivery_check": "check that data sent from one GPU to another arrives",
    "telemetry": "watch power, clocks and connections of the GPUs under load",
    "gpu_count": "count the GPUs that the machine has and the driver uses",
    "a_b": "measure the speed several times with and without direct access",
    "stack_dump": "record where the software stands still",
    "bare_metal_test": "start the machine once without its virtual machine and test the hardware",
}

_STOPS = {
    Restart.NONE: "nothing is restarted",
    Restart.ENGINE: "the serving software is restarted",
    Restart.GUEST: "the system is restarted",
    Restart.VM: "the virtual machine is restarted",
    Restart.HOST: "the whole machine is restarted",
}


def for_a_manager(result: Diagnosis) -> str:
    """One paragraph: what is wrong, how much it can matter at most, what decides next, and its cost."""
    share = _unexplained(result)
    doubt = f"At least {math.floor(share * 100)} % of the time has no explanation yet." if share > 0.1 else ""
    wrong, matters = _wrong(result), _matters(result)
    answer = (doubt, wrong, matters) if share > 0.5 else (wrong, matters, doubt)
    parts = (_before(result), *answer, _conflicts(result), _next(result))
    return " ".join(part for part in parts if part)


def _before(result: Diagnosis) -> str:
    if not result.facts.nothing_since:
        return ""
    return "Nothing was looked at since the last change; what follows is how it was before."


def _wrong(result: Diagnosis) -> str:
    top = top_verdict(result.verdicts)
    if top:
        text = _PLAIN.get(top, f"The evidence supports: {_claim_of(top)}")
        return text.replace("BECAUSE", why_no_clique(result.ladder))
    refuses = [g for g in result.ladder if g.gate == "driver" and g.state is GateState.FAIL]
    if refuses:
        return "The driver refuses some GPUs direct access to each other; why is not known yet."
    return "What holds the speed back is not known yet."


def _claim_of(hypothesis_id: str) -> str:
    return next((h.claim for h in all_hypotheses() if h.id == hypothesis_id), hypothesis_id)


def _matters(result: Diagnosis) -> str:
    bound = min(result.bounds, key=lambda b: b.concurrency, default=None)
    if bound is None or bound.step_ms is None:
        return "How much that matters cannot be said before the observed speed is known."
    if bound.max_gain_remove_comm is None:
        return (
            "How much the exchanges between the GPUs matter is not known: what would tell it was not "
            "measured or given yet."
        )
    where = "for one request at a time" if bound.concurrency == 1 else f"at {bound.concurrency} requests"
    most, direct = bound.max_gain_remove_comm[1], bound.max_gain_p2p
    text = f"If the GPUs never had to wait for each other, answers {where} would come {_faster(most)}"
    text += f"; direct access between them alone would make them {_faster(direct[1])}" if direct else ""
    return f"{text} ({_how_known(bound)}).{_goal(result)}"


def _faster(gain: float) -> str:
    return "no faster" if gain < 1.005 else f"at most {(gain - 1) * 100:.0f} % faster"


def _how_known(bound: Bound) -> str:
    """With what would break the figures, because a manager reads no assumptions."""
    known = bound.basis.get("comm_ms", Basis.ESTIMATED)
    text = "an estimate, not a measurement"
    if known is Basis.MEASURED:
        text = "from measurements here"
    if bound.unless:
        text += "; it would not hold if the software sent this data over the network, which its log tells"
    return text


def _goal(result: Diagnosis) -> str:
    found = [bound for bound in result.bounds if bound.goal_reachable_by_p2p is False]
    if not found:
        return ""
    goal = "goal is out of reach by direct access alone."
    return f" On the same condition the {goal}" if found[0].unless else f" The {goal}"


def _unexplained(result: Diagnosis) -> float:
    """The least share (0…1) of the step that nothing explains; most of it comes before all else."""
    bound = min(result.bounds, key=lambda b: b.concurrency, default=None)
    if not (bound and bound.step_ms and bound.step_ms[1] and bound.unexplained_ms):
        return 0.0
    return bound.unexplained_ms[0] / bound.step_ms[1]


def _conflicts(result: Diagnosis) -> str:
    count = len(result.contradictions)
    if not count:
        return ""
    some = "One thing that we were given contradicts"
    if count > 1:
        some = f"{count} things contradict"
    return f"{some} what else is known and should be settled."


def _next(result: Diagnosis) -> str:
    test = next(iter(result.next_tests), None)
    if test is None:
        return "No further test is proposed."
    return f"Next, {_who(test)} should {_DOES.get(test.id, test.how)}: {_cost(test)}."


def _who(test: NextTest) -> str:
    return "the host’s administrator" if test.actor is Actor.HOST_ADMIN else "the operator"


def _cost(test: NextTest) -> str:
    return f"about {test.minutes} minutes, and {_STOPS[test.restart]}"


def for_an_engineer(result: Diagnosis) -> tuple[Section, ...]:
    """One page; sections without content are left out."""
    sections = (
        Section("Answer", (), (result.headline, *((result.summary,) if result.summary else ()))),
        _time(result),
        _gates(result),
        _verdicts(result, VerdictKind.SUPPORTED, "Supported"),
        _verdicts(result, VerdictKind.REFUTED, "Refuted"),
        _open(result),
        _contradictions(result),
        _tests(result),
        _advice(result, "Recommended", OptionStatus.RECOMMENDED),
        _advice(result, "Not to be done", OptionStatus.UNSAFE, OptionStatus.BLOCKED),
    )
    return tuple(section for section in sections if section.claims or section.notes)


def _time(result: Diagnosis) -> Section:
    claims = [claim for bound in result.bounds for claim in _of_bound(bound)]
    single = min(result.bounds, key=lambda b: b.concurrency, default=None)
    notes = [f"assumption: {text}" for text in (single.assumes if single else ())]
    missing = dict.fromkeys(text for bound in result.bounds for text in bound.missing)
    notes += [f"missing: {in_words(text)}" for text in missing]
    return Section("Where the time goes", tuple(claims), tuple(notes))


def _of_bound(bound: Bound) -> Iterator[Claim]:
    """Each quantity with its own range and basis."""
    at = f"at concurrency {bound.concurrency}"
    parts = (
        ("step_ms", f"{at} a step takes", bound.step_ms),
        ("floor_ms", f"{at} reading weights needs at least", bound.floor_ms),
        ("comm_ms", f"{at} communication takes", bound.comm_ms),
        ("unexplained_ms", f"{at} not explained is", bound.unexplained_ms),
    )
    for name, text, value in parts:
        if value is not None:
            basis, known = bound.basis.get(name, Basis.ESTIMATED), bound.known(name)
            said = tuple(ref for ref in bound.evidence if ref.said)
            refs = said if known == "said" and said else bound.evidence
            yield Claim(f"{text} {span(value)} ms ({known})", refs, value, basis)
    if bound.max_gain_remove_comm:
        removed, direct = bound.max_gain_remove_comm, bound.max_gain_p2p
        text = f"{at} removing all communication gains at most {most(removed)}"
        text += f", P2P at most {most(direct)}" if direct else ""
        text += unless(bound)
        yield Claim(text, bound.evidence, direct or removed, Basis.ESTIMATED)


def _gates(result: Diagnosis) -> Section:
    """Judged gates as statements; the others together, since nothing is known of them."""
    judged = [g for g in result.ladder if g.state in {GateState.PASS, GateState.FAIL}]
    unknown = [g for g in result.ladder if g.state is GateState.UNKNOWN]
    claims = tuple(Claim(_of_gate(g), g.evidence, None, Basis.MEASURED) for g in judged)
    notes = [f"{g.gate} ({PATHS[g.path]}) unknown: {g.why}" for g in unknown]
    return Section("The ladder of peer-to-peer", claims, tuple(notes))


def _of_gate(gate: Gate) -> str:
    state = "passes" if gate.state is GateState.PASS else "fails"
    return f"{gate.gate} ({PATHS[gate.path]}) {state}: {gate.why}"


def _verdicts(result: Diagnosis, kind: VerdictKind, title: str) -> Section:
    """Supported ones in order of importance."""
    names = [n for n, v in result.verdicts.items() if v.kind is kind]
    if kind is VerdictKind.SUPPORTED:
        names = list(supported(result.verdicts))
    return Section(title, tuple(_claim_for(name, result.verdicts[name], kind) for name in names))


SAID = 3  # of what speaks for a hypothesis; its own page has all


def _claim_for(name: str, verdict: Verdict, kind: VerdictKind) -> Claim:
    """One statement a hypothesis: what speaks for it, or the first that speaks against it."""
    claims = verdict.for_ if kind is VerdictKind.SUPPORTED else verdict.against[:1]
    rest = [f"and {len(claims) - SAID} more"] if len(claims) > SAID else []
    texts = "; ".join([*(claim.text for claim in claims[:SAID]), *rest])
    refs = tuple(ref for claim in claims for ref in claim.evidence)
    bases = {claim.basis for claim in claims}
    basis = bases.pop() if len(bases) == 1 else Basis.INFERRED
    span_of = claims[0].range if len(claims) == 1 else None
    return Claim(f"{_claim_of(name)[:-1]}: {texts}", refs, span_of, basis)


def _open(result: Diagnosis) -> Section:
    notes = []
    for name, verdict in result.verdicts.items():
        if verdict.kind is VerdictKind.OPEN:
            share = f" (up to {verdict.share_ms[1]:.1f} ms of a step)" if verdict.share_ms else ""
            asked = f" Would tell: {'; '.join(map(in_words, verdict.missing[:3]))}."
            notes.append(f"{_claim_of(name)[:-1]}{share}.{asked if verdict.missing else ''}")
    return Section("Open, and what would tell", (), tuple(notes))


def _contradictions(result: Diagnosis) -> Section:
    claims = tuple(Claim(item.text, item.evidence, None, Basis.INFERRED) for item in result.contradictions)
    return Section("What contradicts itself", claims)


def _tests(result: Diagnosis) -> Section:
    notes = tuple(
        f"{test.how} ({test.minutes} min; restarts {RESTARTS[test.restart]}; by {ACTORS[test.actor]}); "
        f"could decide: {'; '.join(map(in_words, test.decides))}"
        for test in result.next_tests
    )
    return Section("Next tests", (), notes)


def _advice(result: Diagnosis, title: str, *wanted: OptionStatus) -> Section:
    found = []
    for option in all_options():
        advice = result.advice.get(option.id)
        if advice and advice.status in wanted and advice.why:
            first, effect = advice.why[0], advice.predicted_effect
            after = f" (after {advice.after.replace('_', ' ')})" if advice.after else ""
            text = f"{option.phase} {option.title}{after}: {first.text}"
            text += f"; predicted {factor(effect)} {load(result.bounds[0])}" if effect and result.bounds else ""
            found.append(Claim(text, first.evidence, effect or first.range, first.basis))
    return Section(title, tuple(found))
