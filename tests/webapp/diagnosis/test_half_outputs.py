"""A part of an output, or one output alone, carries no more than it shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents import samples
from agents.facts import Reading
from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.nccl import NCCL_ENV, NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2P_READ, TOPOLOGY, P2pCode
from agents.facts.platform import KVM_VISIBLE, VIRT_KIND
from agents.raw_reading import read_raw
from tests.webapp.diagnosis.building import EIGHT, facts_of, kvm_guest, matrix, topology
from tests.webapp.diagnosis.hypothesis_cases import verdict
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.facts import Facts, Sourced

SAMPLES = Path(samples.__file__).parent / "kpro6"


def alone(name: str) -> Diagnosis:
    found = read_raw((SAMPLES / name).read_bytes(), role=None, hint="")
    given = [r for item in found.items for r in item.readings]
    return diagnose(Facts.of(Sourced(r, "paste@0", 0, i) for i, r in enumerate(given)))


def test_the_firmware_s_name_does_not_say_that_kvm_is_hidden() -> None:
    """The old code said so of the founding case, whose guest sees KVM."""
    found = alone("guest/guest.dmi.txt")
    assert found.verdicts["kvm_hidden"].kind == "open"
    assert "hidden" not in found.headline


def test_ns_is_put_down_to_the_clique_once_the_guest_is_known_to_see_kvm() -> None:
    unsaid = [r for r in kvm_guest() if r.fact_id not in {KVM_VISIBLE.id, VIRT_KIND.id}]
    qemu = VIRT_KIND.known("qemu", lines=(1,))
    found = verdict("p2p_denied_no_clique", *unsaid, qemu)
    assert found.kind == "open"
    assert "was not read" in found.for_[0].text


@pytest.mark.parametrize(("count", "state"), [(1, "unknown"), (8, "pass"), (16, "pass")])
def test_a_line_of_a_log_is_not_the_engine_s_way(count: int, state: str) -> None:
    log = NCCL_TRANSPORTS.known(NcclTransports(p2p=count), lines=(1,))
    found = diagnose(facts_of(*kvm_guest(P2pCode.OK), log))
    used = next(g for g in found.ladder if g.gate == "used")
    assert used.state == state


def test_no_matrix_is_no_answer_of_the_driver() -> None:
    linked = TOPOLOGY.known(topology(8, "NV18"), lines=(1,))
    against = verdict("p2p_denied_no_clique", linked).against[0].text
    assert against.startswith("no two GPUs would use P2P over PCIe")


def test_two_parts_of_one_matrix_contradict_nothing() -> None:
    whole = topology(8, "PHB")
    part = replace(whole, numa_affinity=())
    given: list[Reading[Any]] = [
        TOPOLOGY.known(replace(whole, numa_affinity=("0",) * 8), lines=(1,)),
        TOPOLOGY.known(part, lines=(1,)),
    ]
    found = diagnose(Facts.of(Sourced(r, f"paste@{i}", 0, i) for i, r in enumerate(given)))
    assert not found.contradictions


def test_a_cut_list_of_gpus_loses_none_that_the_driver_s_matrix_names() -> None:
    cut: list[Reading[Any]] = [GPU_COUNT_SMI.known(3, lines=(1,)), GPUS.known(EIGHT[:3], lines=(1,))]
    bus = GPU_COUNT_PCI.known(8, lines=(1,))
    assert verdict("gpu_lost", *cut, bus).kind == "supported"
    read = P2P_READ.known(matrix(8, P2pCode.NS), lines=(2,))
    assert verdict("gpu_lost", *cut, bus, read).kind == "open"


def test_little_power_alone_rules_out_no_heat() -> None:
    busy = replace(EIGHT[0], utilisation_percent=100, power_w=330.0, power_limit_w=600.0)
    cool = replace(busy, temperature_celsius=60)
    assert verdict("power_or_thermal_limit", GPUS.known((busy,), lines=(1,))).kind == "open"
    assert verdict("power_or_thermal_limit", GPUS.known((cool,), lines=(1,))).kind == "refuted"


def test_a_level_of_phb_ends_before_the_other_socket() -> None:
    level = NCCL_ENV.known({"NCCL_P2P_LEVEL": "PHB"}, lines=(1,))
    far = [r for r in kvm_guest(P2pCode.OK) if r.fact_id != TOPOLOGY.id]
    far.append(TOPOLOGY.known(topology(8, "SYS"), lines=(4,)))
    shm = NCCL_TRANSPORTS.known(NcclTransports(shm=16), lines=(1,))
    assert verdict("nccl_level_too_low", *far, level, shm).kind == "supported"
    assert verdict("nccl_level_too_low", level).kind == "open"
    assert verdict("nccl_level_too_low", *kvm_guest(P2pCode.OK), level).kind == "refuted"
