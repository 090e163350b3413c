"""How many GPUs there are, from lists that may be a part of one."""

from __future__ import annotations

import pytest

from agents.facts import Reading
from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.p2p import P2P_READ, P2pCode
from tests.webapp.diagnosis.building import EIGHT, Readings, facts_of, matrix
from webapp.diagnosis.case import GateState
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.situation.pairs import gpu_count, gpu_count_refs

PART = ("the head, so there may be more GPUs",)
FOUR = P2P_READ.known(matrix(4, P2pCode.NS), lines=(9,))


def _listed(count: int, *missing: str) -> Readings:
    return [GPUS.known(EIGHT[:count], lines=(1,)), GPU_COUNT_SMI.known(count, lines=(1,), missing=missing)]


def _on_bus(count: int, *missing: str) -> Reading[int]:
    return GPU_COUNT_PCI.known(count, lines=(5,), missing=missing)


@pytest.mark.parametrize(
    ("readings", "count"),
    [
        (_listed(1), 1),
        ([*_listed(1), FOUR], 1),
        (_listed(1, *PART), None),
        ([*_listed(1, *PART), FOUR], 4),
        ([*_listed(2, *PART), _on_bus(8)], 8),
        (_listed(3, *PART), 3),
        ([_on_bus(1)], 1),
        ([_on_bus(1, "other devices")], None),
        ([_on_bus(1, "other devices"), FOUR], 4),
        ([_on_bus(7), *_listed(8)], 8),
        ([], None),
    ],
)
def test_a_part_of_a_list_is_a_lower_bound(readings: Readings, count: int | None) -> None:
    assert gpu_count(facts_of(*readings)) == count


def test_a_part_of_a_list_does_not_hide_the_driver_s_refusal() -> None:
    facts = facts_of(*_listed(1, *PART), FOUR)
    (driver,) = [gate for gate in diagnose(facts).ladder if gate.gate == "driver"]
    assert driver.state is GateState.FAIL
    assert {ref.line for ref in gpu_count_refs(facts)} == {9}
