"""How many GPUs there are, from lists that may be a part of one."""

from __future__ import annotations

import pytest

from agents.facts import Reading
from agents.facts.bench import ALLREDUCE, DELIVERY, DeliveryResult
from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.p2p import P2P_NVLINK, P2P_READ, TOPOLOGY, P2pCode, TopologyMatrix
from tests.webapp.diagnosis.building import EIGHT, Readings, facts_of, matrix
from webapp.diagnosis.case import GateState, Path
from webapp.diagnosis.compare.post_checks import post_checks
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.situation.pairs import gpu_count, gpu_count_refs, has_nvlink, pairs

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


def test_the_driver_s_ok_joins_pairs_by_nvlink_and_its_refusals_do_not() -> None:
    """GPU0 and GPU1 have a bridge, the third card has none."""
    bridged = matrix(3, P2pCode.NS, (0, 1, P2pCode.OK), (1, 0, P2pCode.OK))
    between = pairs(facts_of(P2P_NVLINK.known(bridged, lines=(1,))))
    assert between.nvlink == {("GPU0", "GPU1"), ("GPU1", "GPU0")}
    assert between.pcie == {(f"GPU{a}", f"GPU{b}") for a, b in ((0, 2), (2, 0), (1, 2), (2, 1))}
    assert between.on(Path.NVLINK) == between.nvlink
    assert between.on(Path.PCIE) == between.pcie
    links = ((None, "NV18", "PHB"), ("NV18", None, "SYS"), ("PHB", "SYS", None))
    topology = TopologyMatrix(("GPU0", "GPU1", "GPU2"), links)
    listed = facts_of(TOPOLOGY.known(topology, lines=(1,)))
    assert pairs(listed) == between
    assert has_nvlink(listed)
    assert not has_nvlink(facts_of(P2P_NVLINK.known(matrix(3, P2pCode.NS), lines=(1,))))


def test_a_check_after_a_change_shows_the_words_and_evidence_of_the_path_that_decides() -> None:
    bridged = matrix(3, P2pCode.NS, (0, 1, P2pCode.OK), (1, 0, P2pCode.OK))
    open_everywhere = P2P_READ.known(matrix(3, P2pCode.OK), lines=(2,))
    keys = [f"{a}->{b}" for a in range(3) for b in range(3) if a != b]
    right = dict.fromkeys(keys, True)
    facts = [P2P_NVLINK.known(bridged, lines=(1,)), open_everywhere]
    wrong = DELIVERY.known(DeliveryResult({**right, "0->2": False}), lines=(7,))
    arrived, summed = post_checks(facts_of(*facts, wrong))
    assert (arrived.fact_id, arrived.state) == (DELIVERY.id, GateState.FAIL)
    assert arrived.why == "the destination did not get the bytes on 1 pairs: GPU0→GPU2"
    assert [(ref.source, ref.line) for ref in arrived.evidence] == [("bench.delivery@000000000000", 7)]
    assert (summed.fact_id, summed.state) == (ALLREDUCE.id, GateState.UNKNOWN)
    arrived, _ = post_checks(facts_of(*facts, DELIVERY.known(DeliveryResult(right), lines=(7,))))
    assert arrived.state is GateState.PASS
    assert arrived.why == (
        "the destination had the right bytes on all 2 checked pairs; "
        "the destination had the right bytes on all 4 checked pairs"
    )
    assert len(arrived.evidence) == 2, "each path has its own"
    del right["2->1"]
    arrived, _ = post_checks(facts_of(*facts, DELIVERY.known(DeliveryResult(right), lines=(7,))))
    assert (arrived.state, arrived.why) == (GateState.UNKNOWN, "2->1 was not checked; the other direction was")
