"""Outputs of another machine: shown, contradicted, and deciding nothing here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.facts import ReadingKind
from agents.facts.bench import (
    ALLREDUCE,
    DELIVERY,
    PROFILE,
    TELEMETRY,
    AllReduceResult,
    AllReduceRow,
    GpuTelemetry,
    Profile,
)
from agents.facts.gpu import GPUS
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2pCode
from agents.facts.platform import VIRT_KIND
from agents.probe import Output
from agents.raw_reading import read_output, read_raw
from tests.agents import payloads
from tests.webapp.diagnosis.building import EIGHT, facts_of, kvm_guest, sourced
from webapp.diagnosis.case import Gate, GateState
from webapp.diagnosis.diagnosis import Diagnosis, diagnose, judge
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation.own_machine import own_readings
from webapp.presenting.pair_map import pair_map

PRINTED = (Path(payloads.__file__).parent / "two_h200_delivery.jsonl").read_text()
CARDS = "NVIDIA H200, NVIDIA H200"
FAILED = """[./simpleP2P] - Starting...
> Peer access from NVIDIA L40S (GPU0) -> NVIDIA L40S (GPU1) : Yes
> Peer access from NVIDIA L40S (GPU1) -> NVIDIA L40S (GPU0) : Yes
cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 25.00GB/s
Verification error @ element 0: val = 0.000000, ref = 0.000000
Test failed!
"""


def pasted(text: str, *, order: int = 100, epoch: int = 0) -> list[Sourced]:
    items = read_raw(text.encode(), role=None).items
    return [
        Sourced(reading, f"{item.reader}@{order:012x}", epoch, order) for item in items for reading in item.readings
    ]


def guest(name: str | None, *, epoch: int = 0) -> list[Sourced]:
    cards = GPUS.known(tuple(replace(gpu, name=name) for gpu in EIGHT[:2]), lines=(3,))
    others = [r for r in kvm_guest(P2pCode.OK, 2) if r.fact_id != GPUS.id]
    return sourced(*others, cards, epoch=epoch)


def told(*items: Sourced) -> tuple[Diagnosis, Gate]:
    result = diagnose(Facts.of(items))
    gate = next(g for g in result.ladder if g.gate == "delivered")
    clashes = [c for c in result.contradictions if c.id == "measured_elsewhere"]
    assert len(clashes) <= 1
    assert bool(clashes) == ("measured on" in gate.why)
    return result, gate


@pytest.mark.parametrize(
    ("card", "header", "own"),
    [
        ("NVIDIA H200", CARDS, True),
        ("H200", CARDS, True),
        ("NVIDIA H2..", CARDS, True),
        ("NVIDIA H200", "NVIDIA H200 MIG 3g.71gb, NVIDIA H200 MIG 3g.71gb", True),
        ("NVIDIA H200", "", True),
        (None, CARDS, True),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", CARDS, False),
        ("NVIDIA RTX PRO 6000 Black..", CARDS, False),
        ("NVIDIA H20", CARDS, False),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA H200 MIG 3g.71gb", False),
    ],
)
def test_a_pasted_check_counts_on_its_own_cards_alone(card: str | None, header: str, own: bool) -> None:
    result, gate = told(*guest(card), *pasted(PRINTED.replace(CARDS, header)))
    assert gate.state is (GateState.PASS if own else GateState.UNKNOWN)
    assert gate.evidence
    cells = pair_map(result.facts)
    assert cells
    cell = cells.rows[0][1][1]
    assert cell
    assert cell.delivered is (True if own else None)
    assert result.facts.kind(DELIVERY) is ReadingKind.KNOWN, "it stays what was read"


def test_wrong_bytes_of_another_machine_fail_nothing_here() -> None:
    result, gate = told(*guest("NVIDIA H200"), *pasted(FAILED))
    assert gate.state is GateState.UNKNOWN
    assert "measured on NVIDIA L40S, but the guest has NVIDIA H200" in gate.why
    assert result.verdicts["false_p2p_grant"].kind == "open"
    assert result.advice["gpudirect_clique"].status != "unsafe"
    assert "delivery_check" in {test.id for test in result.next_tests}
    _, own = told(*guest("NVIDIA L40S"), *pasted(FAILED))
    assert own.state is GateState.FAIL


def test_the_machines_own_check_counts_beside_a_later_one_of_another() -> None:
    own, other = PRINTED.replace(CARDS, "NVIDIA L40S, NVIDIA L40S"), PRINTED
    result = diagnose(Facts.of([*guest("NVIDIA L40S"), *pasted(own), *pasted(other, order=200)]))
    gate = next(g for g in result.ladder if g.gate == "delivered")
    assert gate.state is GateState.PASS
    assert {ref.source for ref in gate.evidence} == {f"bench.delivery@{100:012x}"}
    (clash,) = [c for c in result.contradictions if c.id == "measured_elsewhere"]
    assert {ref.source for ref in clash.evidence} >= {f"bench.delivery@{200:012x}"}


def test_after_a_change_the_cards_are_those_last_listed() -> None:
    _, gate = told(*guest("NVIDIA L40S"), *pasted(PRINTED, epoch=1))
    assert gate.state is GateState.UNKNOWN
    swapped = [*guest("NVIDIA L40S"), *guest("NVIDIA H200", epoch=1)]
    _, gate = told(*swapped, *pasted(PRINTED, epoch=1))
    assert gate.state is GateState.PASS


def test_a_cpu_that_played_the_gpus_says_so() -> None:
    ran = read_output("bench.delivery", Output(PRINTED.replace('"cuda"', '"cpu"')))
    _, gate = told(*guest("NVIDIA H200"), *sourced(*ran))
    assert gate.state is GateState.UNKNOWN
    assert "memory of the CPU" in gate.why


@pytest.mark.parametrize(("card", "state"), [("H200", GateState.PASS), ("L40S", GateState.UNKNOWN)])
def test_a_check_without_a_vm_proves_only_its_own_machines_hardware(card: str, state: GateState) -> None:
    bare = sourced(VIRT_KIND.known("none", lines=(1,)))
    facts = Facts.of([*bare, *pasted(PRINTED), *guest(f"NVIDIA {card}", epoch=1)])
    assert next(g for g in diagnose(facts).ladder if g.gate == "fabric").state is state


def test_all_reduces_of_other_cards_judge_no_collective() -> None:
    row = AllReduceRow(12288, 30.0, 2, wrong=3)
    arms = [
        ALLREDUCE.known(AllReduceResult((r,), p2p, environment={"gpus": CARDS}), lines=(1,))
        for r, p2p in ((row, True), (replace(row, wrong=0), False))
    ]
    for card, state in (("NVIDIA H200", GateState.FAIL), ("NVIDIA L40S", GateState.UNKNOWN)):
        ladder = diagnose(Facts.of([*guest(card), *sourced(*arms)])).ladder
        assert next(g for g in ladder if g.gate == "collective").state is state


def test_telemetry_goes_with_what_the_same_output_measured() -> None:
    looks = TELEMETRY.known((GpuTelemetry("0", 9, throttle_reasons=("hw_thermal",)),), lines=(2,))
    check = pasted(PRINTED)
    beside = [*check, Sourced(looks, check[0].source), Sourced(looks, "bench.telemetry@1")]
    left = own_readings(Facts.of([*guest("NVIDIA L40S"), *beside])).all(TELEMETRY)
    known = {item.source for item in left if item.reading.kind is ReadingKind.KNOWN}
    assert known == {"bench.telemetry@1"}


def test_a_pasted_profile_that_names_no_cards_says_so() -> None:
    profile = PROFILE.known(Profile(20.0, 10.0, 10.0, 5.0, 5.0), lines=(1,))
    texts = {}
    for source in ("paste@0", "bench.engine_profile@0"):
        found = judge(Facts.of([Sourced(profile, source)])).verdicts
        texts[source] = found["communication_latency_bound"].for_[0].text
    assert texts["paste@0"].endswith("; pasted, and it names no cards")
    assert "names no cards" not in texts["bench.engine_profile@0"]


def test_a_log_with_what_this_driver_refuses_is_not_this_engine_s() -> None:
    """The old code passed “used” beside NS on every pair, and dropped the bound's “unless”."""
    p2p = NCCL_TRANSPORTS.known(NcclTransports(p2p=16), lines=(1,))
    found = diagnose(facts_of(*kvm_guest(P2pCode.NS), p2p))
    used = next(g for g in found.ladder if g.gate == "used")
    assert (used.state, "which this driver refuses" in used.why) == (GateState.UNKNOWN, True)
    assert "refused_but_used" in {c.id for c in found.contradictions}
    shm = NCCL_TRANSPORTS.known(NcclTransports(shm=16), lines=(1,))
    used = next(g for g in diagnose(facts_of(*kvm_guest(P2pCode.NS), shm)).ladder if g.gate == "used")
    assert used.state is GateState.FAIL
