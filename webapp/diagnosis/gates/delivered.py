"""Do the bytes arrive: a pattern written by one GPU, read back by the GPU that owns the memory.

A check by the GPU that writes is blind to a mapping that mirrors its own memory.

Source: NVIDIA/nccl issue 2335.
"""

import re

from agents.facts.bench import DELIVERY
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.gates import driver
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.pairs import Pair

GATE = "delivered"


def judge(situation: Situation, path: Path) -> Gate:
    checked = _on_path(situation, path)
    refs = situation.facts.refs(DELIVERY)
    wrong = sorted(f"{a}→{b}" for (a, b), right in checked.items() if not right)
    if not checked:
        return _not_checked(situation.facts, path, driver.state(situation, path))
    if driver.refuses(situation, path):
        why = "bytes were checked, but the driver refuses P2P here, so the copies were staged"
        return Gate(GATE, path, GateState.UNKNOWN, why, refs)
    if wrong:
        why = f"the destination did not get the bytes on {len(wrong)} pairs: {', '.join(wrong[:4])}"
        return Gate(GATE, path, GateState.FAIL, why, refs)
    every = {frozenset(pair) for pair in situation.pairs.on(path)}
    seen = {frozenset(pair) for pair in checked}
    if every - seen:
        why = f"right on {len(seen)} of {len(every)} pairs; the others were not checked"
        return Gate(GATE, path, GateState.UNKNOWN, why, refs)
    why = f"the destination had the right bytes on all {len(checked)} checked pairs"
    return Gate(GATE, path, GateState.PASS, why, refs)


def _not_checked(facts: Facts, path: Path, allowed: GateState) -> Gate:
    why = "no copy was checked by the GPU that receives it"
    expected = None
    if allowed is GateState.PASS:
        why += "; a matrix of OK and a bandwidth figure do not show it"
    elif allowed is GateState.FAIL:
        expected = "nothing to check until the driver allows P2P"
    unread = facts.unread(DELIVERY)
    refs = facts.refs(DELIVERY) if unread else ()
    why += f" (what was read: {unread})" if unread else ""
    return Gate(GATE, path, GateState.UNKNOWN, why, refs, expected)


def _on_path(situation: Situation, path: Path) -> dict[Pair, bool]:
    """Keys of the benchmark hold the two indices in order ("0->1")."""
    result = situation.facts.value(DELIVERY)
    if result is None:
        return {}
    on_path = situation.pairs.on(path)
    checked: dict[Pair, bool] = {}
    for key, right in result.pairs.items():
        numbers = re.findall(r"\d+", key)
        if len(numbers) == 2:
            checked[(f"GPU{numbers[0]}", f"GPU{numbers[1]}")] = right
    return {pair: right for pair, right in checked.items() if pair in on_path or not on_path}


rung = Rung(GATE, judge, place=5, decided_by=("delivery_check",))
