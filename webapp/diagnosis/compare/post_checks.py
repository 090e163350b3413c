"""Checks that must pass after a change that lets GPUs reach each other, before the change counts as verified.

The driver's OK and a bandwidth look the same on a board that does not route peer writes, where data are corrupted
silently. Only bytes checked by their owner and a collective with checked values tell.

Source: NVIDIA/nccl issue 2335.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agents.facts.bench import ALLREDUCE, DELIVERY
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pCode
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.compare.predictions import Chosen
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.gates import collective, delivered
from webapp.diagnosis.situation import Situation

_AFTERWARDS = frozenset({DELIVERY.id, ALLREDUCE.id, P2P_READ.id, P2P_WRITE.id})


@dataclass(frozen=True, slots=True)
class Check:
    """One of the two. fact_id: of the measurement that tells. state: fail where data were wrong or nothing
    came back, unknown where it was not seen to be right."""

    fact_id: str
    state: GateState
    why: str
    evidence: tuple[EvidenceRef, ...]


def opens_p2p(option: Chosen, after: Facts) -> bool:
    """Whether the change lets GPUs reach each other: as declared, else by the driver's answers `after` it."""
    if option.p2p_after is not None or not option.moves_p2p:
        return option.p2p_after is P2pCode.OK
    matrix = after.value(P2P_READ)
    return matrix is None or P2pCode.OK in matrix.pairs().values()


def since(facts: Facts, epoch: int, until: int | None) -> Facts:
    """All facts, but of the checks and the driver's answers only what was read from one epoch on, until
    another, which is not included."""

    def in_period(fact_id: str, at: int) -> bool:
        return fact_id not in _AFTERWARDS or (at >= epoch and (until is None or at < until))

    every = (item for group in facts.readings.values() for item in group)
    return Facts.of([i for i in every if in_period(i.reading.fact_id, i.epoch)], facts.changes)


def post_checks(after: Facts) -> tuple[Check, ...]:
    """after: as `since` gives them."""
    situation = Situation(after)
    paths = [path for path in Path if situation.pairs.on(path)] or [Path.PCIE]
    arrived = _check(DELIVERY.id, [delivered.judge(situation, path) for path in paths])
    one_way = _one_way(after)
    if one_way and arrived.state is GateState.PASS:
        why = f"{', '.join(one_way[:4])} was not checked; the other direction was"
        arrived = replace(arrived, state=GateState.UNKNOWN, why=why)
    return arrived, _check(ALLREDUCE.id, [collective.judge(situation, path) for path in paths])


def _check(fact_id: str, gates: list[Gate]) -> Check:
    """The worst of all paths decides."""
    order = (GateState.FAIL, GateState.UNKNOWN, GateState.PASS)
    state = min((gate.state for gate in gates), key=order.index)
    worst = [gate for gate in gates if gate.state is state]
    why = "; ".join(dict.fromkeys(gate.why for gate in worst))
    return Check(fact_id, state, why, tuple(ref for gate in worst for ref in gate.evidence))


def _one_way(after: Facts) -> list[str]:
    """Pairs that were checked in the other direction only: each direction has a mapping of its own."""
    checked = after.value(DELIVERY)
    return sorted(_reversed_pairs(set(checked.pairs))) if checked else []


def _reversed_pairs(keys: set[str]) -> Iterator[str]:
    for key in keys:
        sender, arrow, receiver = key.partition("->")
        back = f"{receiver}->{sender}"
        if arrow and back not in keys:
            yield back
