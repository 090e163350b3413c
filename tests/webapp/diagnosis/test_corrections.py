from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import Reading
from agents.facts.host import HOST_CMDLINE
from agents.facts.nccl import NCCL_ENV
from agents.facts.p2p import TOPOLOGY
from agents.facts.platform import KERNEL_CMDLINE, VIRT_KIND
from agents.facts.vm import VM_ID, VMS, Vm
from agents.facts.workload import NOTES
from tests.webapp.diagnosis.building import facts_of, topology
from webapp.diagnosis import corrections
from webapp.diagnosis.reference.beliefs import BELIEFS
from webapp.diagnosis.situation import Situation

ID_OF = {belief.belief: belief.id for belief in BELIEFS}


def _ids(*readings: Reading[Any]) -> set[str]:
    return {ID_OF[found.belief] for found in corrections.find(Situation(facts_of(*readings)))}


def _said(text: str) -> set[str]:
    return _ids(NOTES.known(text, lines=(1,)))


@pytest.mark.parametrize(
    ("text", "belief"),
    [
        ("set amd_iommu=on on the host", "amd_iommu_on"),
        ("add iommu=pt so that DMA is faster", "iommu_pt"),
        ("there is no IOMMU in the guest", "guest_without_iommu"),
        ("we could try the ACS override patch", "acs_override"),
        ("then we disabled ACS in the BIOS", "acs_off_in_firmware"),
        ("the GPUs sit in separate IOMMU groups", "separate_groups"),
        ("even on bare metal P2P would be unavailable", "not_even_on_bare_metal"),
        ("a Dummy Host Bridge per slot", "dummy_host_bridge"),
        ("traffic crosses the QEMU-emulated PCIe bus", "emulated_data_path"),
        ("phase 1: pcie=1 on each hostpci", "pcie_flag"),
        ("q35 should enable P2P", "q35_fixes_ns"),
        ("low-risk, it needs a VM restart", "low_risk_restart"),
        ("NCCL variables can be set on the running server", "nccl_env_while_running"),
        ("PHB (Packet Hop Bounce)", "packet_hop_bounce"),
        ("NCCL_P2P_LEVEL=PHB makes NCCL try and fail", "p2p_level_costs"),
        ("load nv_peer_mem for software P2P", "peermem"),
        ("use allow_unsafe_interrupts as a workaround", "unsafe_interrupts"),
        ("one all-reduce per layer", "one_all_reduce_per_layer"),
        ("12 KB all-reduce takes 13.7 us", "copy_is_all_reduce"),
        ("bare metal is sub-microsecond", "sub_microsecond_speedup"),
        ("P2P could double or triple throughput", "p2p_doubles_throughput"),
        ("that is a 97 % bandwidth loss", "same_gpu_baseline"),
        ("a copy within the same GPU runs at 1033 GB/s", "same_gpu_baseline"),
        ("P2P would give 64 GB/s", "link_rate_as_goal"),
        ("485 total tok/s", "total_is_speed"),
        ("so we are compute-bound", "utilisation_is_compute"),
        ("memory bandwidth 52-53 %", "utilisation_is_bandwidth"),
        ("GPUs 4-7 are on one bridge", "pix_in_a_guest"),
        ("NUMA affinity is N/A", "numa_not_available"),
        ("TP4+PP2 halves communication", "tp4_pp2_halves"),
        ("the weights are 296 GB", "glm5_weights"),
        ("x-vga=off as best practice", "x_vga_off"),
        ("this is a fundamental hardware limit", "fundamental_limit"),
        ("pci=realloc brought them back", "pci_realloc"),
    ],
)
def test_words_that_show_a_belief(text: str, belief: str) -> None:
    assert belief in _said(text)


@pytest.mark.parametrize(
    "text", ["", "8x RTX PRO 6000 Blackwell, TP8, 11 tok/s single stream, goal 100 tok/s", "why is decode slow?"]
)
def test_plain_words_show_none(text: str) -> None:
    assert _said(text) == set()


def test_kernel_command_lines() -> None:
    host = "BOOT_IMAGE=/vmlinuz quiet amd_iommu=on iommu=pt pcie_acs_override=downstream,multifunction"
    assert _ids(HOST_CMDLINE.known(host, lines=(1,))) == {"amd_iommu_on", "iommu_pt", "acs_override"}
    assert _ids(HOST_CMDLINE.known("quiet amd_iommu=off", lines=(1,))) == set()
    assert _ids(KERNEL_CMDLINE.known("quiet pci=realloc,nocrs", lines=(1,))) == {"pci_realloc"}


def test_vm_configuration_of_the_chosen_vm() -> None:
    hides = Vm(id=1, config={"cpu": "host,hidden=1", "hostpci0": "0000:01:00.0,x-vga=1"})
    plain = Vm(id=2, config={"cpu": "host", "hostpci0": "mapping=gpu,pcie=1"})
    both = VMS.known((hides, plain), lines=(1,))
    assert _ids(both) == {"hide_kvm", "x_vga_on"}
    assert _ids(both, VM_ID.known(2, lines=(1,))) == set()
    args = replace(plain, config={"args": "-cpu host,kvm=off"})
    assert _ids(VMS.known((args,), lines=(1,))) == {"hide_kvm"}


def test_nccl_variables() -> None:
    variables = {"NCCL_SHM_DISABLE": "1", "NCCL_BUFFSIZE": "8388608", "NCCL_P2P_LEVEL": "PHB"}
    assert _ids(NCCL_ENV.known(variables, lines=(1,))) == {"shm_disable", "buffer_size"}
    assert _ids(NCCL_ENV.known({"NCCL_SHM_DISABLE": "0"}, lines=(1,))) == set()


def test_signs_in_the_guests_outputs() -> None:
    kvm = VIRT_KIND.known("kvm", lines=(1,))
    pix = TOPOLOGY.known(topology(8, "PIX"), lines=(1,))
    assert "pix_in_a_guest" in _ids(kvm, pix)
    assert "pix_in_a_guest" not in _ids(VIRT_KIND.known("none", lines=(1,)), pix)
    no_node = TOPOLOGY.known(replace(topology(2, "PHB"), numa_affinity=(None, None)), lines=(1,))
    assert _ids(kvm, no_node) == {"numa_not_available"}


def test_every_belief_is_complete_and_its_patterns_compile() -> None:
    assert len({belief.id for belief in BELIEFS}) == len(BELIEFS) == len(ID_OF)
    for belief in BELIEFS:
        assert belief.belief
        assert belief.correct
        assert belief.source
        patterns = (belief.notes, belief.host_cmdline, belief.guest_cmdline, belief.vm, belief.nccl)
        assert any(patterns), belief.id
        assert not any(re.search(p, "", re.I | re.M) for p in patterns if p), belief.id


@settings(max_examples=50)
@given(text=st.text(max_size=300))
def test_a_belief_is_corrected_once(text: str) -> None:
    found = corrections.find(Situation(facts_of(NOTES.known(text * 2, lines=(1,)))))
    assert len(found) == len(set(found))
