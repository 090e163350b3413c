"""Is a collective right over P2P: a value-checked all-reduce, beside a control arm without P2P.

NCCL writes the transports it took to its log, and nccl-tests check the values with `-c 1`.

Source: NVIDIA/nccl-tests, README.
"""

from enum import StrEnum

from agents.facts import ReadingKind
from agents.facts.bench import ALLREDUCE, AllReduceResult
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.gates import driver
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation

GATE = "collective"


class Outcome(StrEnum):
    """unchecked: rows whose values nobody compared."""

    RIGHT = "right"
    WRONG = "wrong"
    HANG = "hang"
    UNCHECKED = "unchecked"


def judge(situation: Situation, path: Path) -> Gate:
    facts = situation.facts
    arms = _newest_arms(facts)
    if not arms:
        expected = "right or wrong only shows once the driver allows P2P"
        refused = driver.refuses(situation, path)
        unread = facts.unread(ALLREDUCE)
        why = "no value-checked all-reduce" + (f" (what was read: {unread})" if unread else "")
        refs = facts.refs(ALLREDUCE) if unread else ()
        return Gate(GATE, path, GateState.UNKNOWN, why, refs, expected if refused else None)
    refs = tuple(ref for item in arms for ref in _lines(item))
    results: list[AllReduceResult] = [s.reading.value for s in arms if s.reading.value]
    over = [outcome(result) for result in results if _over_p2p(situation, path, result)]
    control = [outcome(result) for result in results if result.p2p is False]
    if not over:
        return Gate(GATE, path, GateState.UNKNOWN, "no all-reduce was seen to run over P2P", refs)
    if Outcome.RIGHT not in control:
        return Gate(GATE, path, GateState.UNKNOWN, f"over P2P: {over[0]}; no control arm without P2P is right", refs)
    bad = [result for result in over if result in {Outcome.WRONG, Outcome.HANG}]
    if bad:
        return Gate(GATE, path, GateState.FAIL, f"over P2P: {bad[0]}; the control without P2P is right", refs)
    if Outcome.UNCHECKED in over:
        return Gate(GATE, path, GateState.UNKNOWN, "the all-reduce over P2P did not check its values", refs)
    return Gate(GATE, path, GateState.PASS, "right over P2P, and in the control without", refs)


def _lines(item: Sourced) -> tuple[EvidenceRef, ...]:
    """The first rows of an arm, and its last line, which names the transport and how it ended."""
    return item.refs[:2] + item.refs[2:][-1:]


def outcome(result: AllReduceResult) -> Outcome:
    """A run that its watchdog ended says so in environment["outcome"]: "hang"."""
    if result.environment.get("outcome") == "hang":
        return Outcome.HANG
    if any(row.wrong for row in result.rows):
        return Outcome.WRONG
    checked = bool(result.rows) and all(row.wrong == 0 for row in result.rows)
    return Outcome.RIGHT if checked else Outcome.UNCHECKED


def _over_p2p(situation: Situation, path: Path, result: AllReduceResult) -> bool:
    """P2P was on, the log's transport does not say otherwise, and the driver does not refuse it."""
    transport = result.environment.get("transport", "P2P")
    if not result.p2p or not transport.upper().startswith("P2P"):
        return False
    return not driver.refuses(situation, path)


def _newest_arms(facts: Facts) -> list[Sourced]:
    known = [s for s in facts.all(ALLREDUCE) if s.reading.kind is ReadingKind.KNOWN]
    newest = max((s.epoch for s in known), default=0)
    return [s for s in known if s.epoch == newest]


rung = Rung(GATE, judge, place=6, decided_by=("delivery_check", "stack_dump"))
