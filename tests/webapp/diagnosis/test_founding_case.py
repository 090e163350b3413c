"""The founding case stage by stage, as facts: what ladder, hypotheses, contradictions and corrections
must say of it. Copies and bounds are given as ranges; their arithmetic has its own tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agents.facts import Reading
from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.host import GPU_PATHS, HOST_CMDLINE, PLATFORM, GpuPath, Platform
from agents.facts.nccl import NCCL_ENV
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode, TopologyMatrix
from agents.facts.platform import KVM_VISIBLE, MACHINE_TYPE, NUMA_NODES, PHYS_BITS, VIRT_KIND, MachineType, NumaNode
from agents.facts.vm import VMS, HostPci, Vm
from agents.facts.workload import MODEL, NOTES, OBSERVED, PARALLELISM, Model, Observed, Parallelism
from tests.webapp.diagnosis.building import EIGHT, matrix, sourced
from webapp.diagnosis import corrections
from webapp.diagnosis.case import Bound, Case, GateState, Verdict
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.contradictions import find
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.ladder import judge_ladder
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.vm import with_vm

CARDS = tuple(
    replace(
        gpu,
        name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
        vram_mib=97887,
        utilisation_percent=100,
        power_w=330.0,
        power_limit_w=600.0,
    )
    for gpu in EIGHT
)
WORDS = (
    "Eight cards, 8 x RTX PRO 6000. 64 concurrent: 485 tok/s. GPU utilization 100 %, power 55 % of "
    "600 W, memory bandwidth 52-53 %. So we are compute-bound."
)


def _as_i440fx_shows_it() -> TopologyMatrix:
    """PIX among the last four, PHB elsewhere, no NUMA node."""
    rows = tuple(tuple(None if a == b else "PIX" if min(a, b) >= 4 else "PHB" for b in range(8)) for a in range(8))
    return TopologyMatrix(tuple(f"GPU{i}" for i in range(8)), rows, numa_affinity=(None,) * 8)


def _first() -> list[Sourced]:
    said = (Observed(1, (11.0, 11.0)), Observed(64, (211.0, 250.0), (485.0, 485.0)))
    model = Model("GLM-5-NVFP4", 78, 6144, 2, total_params=744e9, weight_bytes=(410e9, 440e9))
    return sourced(NOTES.known(WORDS), OBSERVED.known(said), MODEL.known(model), PARALLELISM.known(Parallelism(tp=8)))


def _guest(board: MachineType = MachineType.I440FX, *more: Reading[Any], epoch: int = 0) -> list[Sourced]:
    ns = matrix(8, P2pCode.NS)
    return sourced(
        VIRT_KIND.known("kvm", lines=(1,)),
        KVM_VISIBLE.known(True, lines=(1,)),
        MACHINE_TYPE.known(board, lines=(2,)),
        GPUS.known(CARDS, lines=(3,)),
        TOPOLOGY.known(_as_i440fx_shows_it(), lines=(4,)),
        P2P_READ.known(ns, lines=(5,)),
        P2P_WRITE.known(ns, lines=(6,)),
        NUMA_NODES.known((NumaNode(0, "0-63"),), lines=(7,)),
        NCCL_ENV.known({"NCCL_P2P_LEVEL": "PHB"}, lines=(8,)),
        *more,
        epoch=epoch,
    )


def _host() -> list[Sourced]:
    devices = tuple(HostPci(slot, mapping="pro6000") for slot in range(8))
    config = {f"hostpci{slot}": "mapping=pro6000" for slot in range(8)} | {"name": "llm-one"}
    lines = {key: number for number, key in enumerate(config, 1)}
    vm = Vm(128, "llm-one", hostpci=devices, config=config, key_lines=lines)
    paths = tuple(GpuPath(f"0000:{i}1:00.0", f"0000:{i}0", f"0000:{i}0:01.1") for i in range(8))
    return sourced(
        VMS.known((vm,), lines=(1,)),
        HOST_CMDLINE.known("BOOT_IMAGE=/vmlinuz root=ZFS=rpool quiet", lines=(1,)),
        PLATFORM.known(Platform(board="ESC8000A-E13", cpu="AMD EPYC 9335"), lines=(1,)),
        GPU_PATHS.known(paths, lines=(1,)),
    )


AT_GUEST = (
    Bound(
        1,
        step_ms=(90.9, 90.9),
        floor_ms=(1.8, 5.6),
        comm_ms=(2.1, 30.0),
        unexplained_ms=(55.3, 87.0),
        max_gain_remove_comm=(1.02, 1.49),
        max_gain_p2p=(1.0, 1.4),
        goal_reachable_by_p2p=False,
    ),
    Bound(64, step_ms=(256.0, 303.0), floor_ms=(20.0, 60.0), comm_ms=(6.5, 35.0)),
)


def _case(items: list[Sourced], bounds: tuple[Bound, ...] = ()) -> Case:
    facts = with_vm(Facts.of(items))
    return Case(Situation(facts), judge_ladder(Situation(facts)), bounds)


def _verdicts(case: Case) -> dict[str, Verdict]:
    return {h.id: h.assess(case) for h in all_hypotheses()}


def _states(case: Case) -> dict[str, str]:
    return {gate.gate: str(gate.state) for gate in case.ladder}


def _beliefs(case: Case) -> str:
    return " ".join(found.correct for found in corrections.find(case.situation))


def test_first() -> None:
    step = replace(AT_GUEST[0], comm_ms=None, max_gain_remove_comm=None, max_gain_p2p=None)
    case = _case(_first(), (replace(step, goal_reachable_by_p2p=None),))
    verdicts = _verdicts(case)
    assert set(_states(case).values()) == {"unknown"}
    assert verdicts["compute_bound"].kind == "open"
    assert verdicts["communication_latency_bound"].kind == "open"
    assert "bench.copy" in verdicts["communication_latency_bound"].missing
    assert verdicts["memory_bandwidth_bound"].kind == "refuted"
    assert verdicts["hang"].kind == "refuted"
    assert {v.kind for v in verdicts.values()} == {"open", "refuted"}
    [found] = find(case)
    assert found.text.endswith("485 tok/s counts input and output; output is 211–250 tok/s")
    assert "share of time in which any kernel ran" in _beliefs(case)


def test_guest() -> None:
    case = _case([*_first(), *_guest()], AT_GUEST)
    verdicts = _verdicts(case)
    assert _states(case) == {**dict.fromkeys(_states(case), "unknown"), "driver": "fail"}
    driver, granted = case.gate("driver"), case.gate("granted")
    assert driver is not None
    assert "NS on 56 of 56 ordered pairs" in driver.why
    assert granted is not None
    assert (granted.expected or "").startswith("absent")
    assert verdicts["p2p_denied_no_clique"].kind == "supported"
    assert verdicts["communication_latency_bound"].kind == "open"
    assert verdicts["communication_latency_bound"].share_ms == (2.1, 30.0)
    assert verdicts["compute_bound"].kind == "open"
    assert not verdicts["compute_bound"].for_
    assert verdicts["power_or_thermal_limit"].kind == "open", "no temperature, no clock was given"
    assert verdicts["p2p_unsupported_gpu"].kind == "refuted"
    assert verdicts["nccl_level_too_low"].kind == "refuted", "it is for later"
    assert "pci.2" in _beliefs(case)
    assert "more than one node" in _beliefs(case)
    assert {c.id for c in find(case)} == {"total_as_output"}


def test_host() -> None:
    case = _case([*_first(), *_guest(), *_host()], AT_GUEST)
    granted, fabric = case.gate("granted"), case.gate("fabric")
    assert granted is not None
    assert granted.state is GateState.FAIL
    assert "VM 128’s configuration has no args" in granted.why
    assert fabric is not None
    assert fabric.state is GateState.UNKNOWN
    assert (fabric.expected or "").startswith("possible")
    assert _verdicts(case)["acs_detour"].kind == "refuted"
    assert _verdicts(case)["p2p_denied_no_clique"].kind == "supported"


def test_after() -> None:
    lost = (GPU_COUNT_PCI.known(8, lines=(1,)), GPU_COUNT_SMI.known(2, lines=(1,)))
    bits = PHYS_BITS.known(40, lines=(1,))
    after = _guest(MachineType.Q35, *lost, bits, epoch=1)
    case = _case([*_first(), *_guest(), *_host(), *after], AT_GUEST)
    verdicts = _verdicts(case)
    assert _states(case)["driver"] == "fail"
    assert _states(case)["granted"] == "fail"
    assert verdicts["gpu_lost"].kind == "supported"
    assert verdicts["bar_space_shortage"].kind == "supported"
    assert "gpu_count" in {c.id for c in find(case)}
