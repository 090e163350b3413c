"""One diagnosis in a paragraph for somebody who does not know the field's words.

It says only what the diagnosis holds: figures with their basis, what is not known as not known.
"""

import math

from webapp.diagnosis.answer.headline import top_verdict
from webapp.diagnosis.case import Actor, Bound, Case, GateState, NextTest, Restart
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.next_test import plain_of
from webapp.diagnosis.situation import Situation

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
        return top.in_plain_words(Case(Situation(result.facts), result.ladder, result.bounds, result.verdicts))
    refuses = [g for g in result.ladder if g.gate == "driver" and g.state is GateState.FAIL]
    if refuses:
        return "The driver refuses some GPUs direct access to each other; why is not known yet."
    return "What holds the speed back is not known yet."


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
    out_of_reach = [bound for bound in result.bounds if bound.goal_reachable_by_p2p is False]
    if not out_of_reach:
        return ""
    goal = "goal is out of reach by direct access alone."
    return f" On the same condition the {goal}" if out_of_reach[0].unless else f" The {goal}"


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
    return f"Next, {_who(test)} should {plain_of(test)}: {_cost(test)}."


def _who(test: NextTest) -> str:
    return "the host’s administrator" if test.actor is Actor.HOST_ADMIN else "the operator"


def _cost(test: NextTest) -> str:
    return f"about {test.minutes} minutes, and {_STOPS[test.restart]}"
