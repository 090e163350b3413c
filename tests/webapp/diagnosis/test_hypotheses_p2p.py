"""Hypotheses about why GPUs do not reach each other, or only seem to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import ALLREDUCE, DELIVERY, AllReduceResult, AllReduceRow, DeliveryResult
from agents.facts.gpu import CLIQUE_CAPABILITY, FABRIC, GPUS, NVLINKS, Clique, Fabric, Gpu, NvLinks
from agents.facts.host import ACS, GPU_PATHS, AcsPort, GpuPath
from agents.facts.nccl import NCCL_ENV, NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode
from agents.facts.platform import KVM_VISIBLE, SHM, VIRT_KIND, SharedMemory
from agents.facts.vm import VM_CPU_HIDDEN
from tests.webapp.diagnosis.building import EIGHT, kvm_guest, matrix, topology
from tests.webapp.diagnosis.hypothesis_cases import verdict
from webapp.diagnosis.case import Bound

Given = Sequence[Reading[Any] | Bound]

NS, OK, CNS = P2pCode.NS, P2pCode.OK, P2pCode.CNS
BARE = VIRT_KIND.known("none", lines=(1,))
SHARED = GPU_PATHS.known(
    tuple(GpuPath(f"0000:0{i}:00.0", "0000:00", "0000:00:01.0", "0000:01:00.0") for i in range(2)), lines=(1,)
)
APART = GPU_PATHS.known(
    tuple(GpuPath(f"0000:{i}1:00.0", f"0000:{i}0", f"0000:{i}0:01.1") for i in range(8)), lines=(1,)
)
REDIRECT = ACS.known((AcsPort("0000:01:00.0", True, "ReqRedir+"),), lines=(1,))


def _gpus(**changes: Any) -> Reading[Any]:
    return GPUS.known(tuple(replace(gpu, **changes) for gpu in EIGHT), lines=(1,))


def _with(guest: list[Reading[Any]], *instead: Reading[Any]) -> list[Reading[Any]]:
    replaced = {reading.fact_id for reading in instead}
    return [r for r in guest if r.fact_id not in replaced] + list(instead)


def _checked(right: bool) -> list[Reading[Any]]:
    row = AllReduceRow(12288, 30.0, 2, wrong=0)
    return [
        DELIVERY.known(DeliveryResult({"0->1": right, "1->0": right}), lines=(1,)),
        ALLREDUCE.known(AllReduceResult((row,), True), lines=(1,)),
        ALLREDUCE.known(AllReduceResult((row,), False), lines=(1,)),
    ]


CASES: dict[str, dict[str, Given]] = {
    "p2p_denied_no_clique": {
        "supported": [*kvm_guest(NS)],
        "refuted": [*kvm_guest(OK)],
        "open": [*_with(kvm_guest(NS), _gpus(mig=None))],
    },
    "p2p_denied_other": {
        "supported": _with(kvm_guest(NS), _gpus(mig=True)),
        "refuted": [*kvm_guest(OK)],
        "open": [*kvm_guest(NS)],
    },
    "kvm_hidden": {
        "supported": [VIRT_KIND.known("qemu", lines=(1,)), KVM_VISIBLE.known(False, lines=(1,))],
        "refuted": [*kvm_guest(NS)],
        "open": [P2P_READ.known(matrix(8, CNS), lines=(1,))],
    },
    "false_p2p_grant": {
        "supported": [*kvm_guest(OK, 2), *_checked(right=False)],
        "refuted": [*kvm_guest(OK, 2), *_checked(right=True)],
        "open": [*kvm_guest(OK, 2)],
    },
    "p2p_unsupported_gpu": {
        "supported": [_gpus(name="NVIDIA GeForce RTX 4090"), P2P_READ.known(matrix(8, CNS), lines=(1,))],
        "refuted": [_gpus(name="NVIDIA RTX PRO 6000 Blackwell Server Edition")],
        "open": [*kvm_guest(NS)],
    },
    "nvlink_fabric_down": {
        "supported": [FABRIC.known(Fabric("In Progress"), lines=(1,)), BARE],
        "refuted": [*kvm_guest(NS)],
        "open": [BARE, P2P_READ.known(matrix(4, NS), lines=(1,))],
    },
    "acs_detour": {
        "supported": [*kvm_guest(OK), SHARED, REDIRECT],
        "refuted": [*kvm_guest(OK), APART, REDIRECT],
        "open": [*kvm_guest(OK), SHARED],
    },
    "nccl_level_too_low": {
        "supported": [*kvm_guest(OK), NCCL_TRANSPORTS.known(NcclTransports(shm=16), lines=(1,))],
        "refuted": [*kvm_guest(OK), NCCL_ENV.known({"NCCL_P2P_LEVEL": "PHB"}, lines=(1,))],
        "open": [*kvm_guest(OK)],
    },
    "nccl_on_network": {
        "supported": [NCCL_TRANSPORTS.known(NcclTransports(net=16), lines=(1,))],
        "refuted": [NCCL_TRANSPORTS.known(NcclTransports(shm=16), lines=(1,))],
        "open": [SHM.known(SharedMemory(64), lines=(1,))],
    },
}


@pytest.mark.parametrize("kind", ["supported", "refuted", "open"])
@pytest.mark.parametrize("hypothesis_id", CASES)
def test_a_case_decides(hypothesis_id: str, kind: str) -> None:
    got = verdict(hypothesis_id, *CASES[hypothesis_id][kind])
    assert got.kind == kind
    if kind != "open":
        assert got.for_ if kind == "supported" else got.against


def test_what_was_not_excluded_is_named() -> None:
    got = verdict("p2p_denied_no_clique", *_with(kvm_guest(NS), _gpus(virtualisation_mode=None)))
    assert got.kind == "supported"
    assert any("these are no vGPUs is assumed" in claim.text for claim in got.for_)
    assert got.missing, "the capability itself was not looked for"


@pytest.mark.parametrize(
    "instead",
    [
        _gpus(virtualisation_mode="VGPU"),
        GPUS.known((EIGHT[0], replace(EIGHT[1], name="Other card")), lines=(1,)),
        KVM_VISIBLE.unreadable("?"),
    ],
)
def test_other_causes_of_ns_do_not_count_as_a_missing_clique(instead: Reading[Any]) -> None:
    guest = _with(kvm_guest(NS), instead)
    if instead.fact_id == KVM_VISIBLE.id:
        guest = _with(guest, VIRT_KIND.known("qemu", lines=(1,)))
    assert verdict("p2p_denied_no_clique", *guest).kind == "open"


def test_a_clique_that_is_there_turns_the_verdict() -> None:
    found = tuple(Clique(f"0000:0{i}:00.0", 0, 0xC8) for i in range(8))
    guest = [*kvm_guest(NS), CLIQUE_CAPABILITY.known(found, lines=(1,))]
    assert verdict("p2p_denied_no_clique", *guest).kind == "refuted"
    assert verdict("p2p_denied_other", *guest).kind == "supported"


def test_the_gain_of_p2p_is_its_share() -> None:
    bound = Bound(1, step_ms=(100.0, 100.0), max_gain_p2p=(1.0, 1.25))
    share = verdict("p2p_denied_no_clique", *kvm_guest(NS), bound).share_ms
    assert share == pytest.approx((0.0, 20.0))


def test_nothing_granted_cannot_be_a_false_grant() -> None:
    assert verdict("false_p2p_grant", *kvm_guest(NS)).kind == "refuted"


@pytest.mark.parametrize("code", [CNS, P2pCode.TNS, P2pCode.DR, P2pCode.GNS])
def test_codes_that_name_another_reason(code: P2pCode) -> None:
    got = verdict("p2p_denied_other", *kvm_guest(code))
    assert got.kind == "supported"
    assert str(code) in got.for_[0].text


def test_ns_on_bare_metal_is_another_reason() -> None:
    given: list[Reading[Any]] = [
        BARE,
        P2P_READ.known(matrix(4, NS), lines=(1,)),
        P2P_WRITE.known(matrix(4, NS), lines=(1,)),
    ]
    assert verdict("p2p_denied_other", *given).kind == "supported"
    assert verdict("p2p_denied_no_clique", *given).kind == "refuted"


def test_a_configuration_that_hides_kvm() -> None:
    hidden = VM_CPU_HIDDEN.known(True, lines=(3,))
    assert verdict("kvm_hidden", hidden).kind == "supported"
    assert verdict("kvm_hidden", hidden, *kvm_guest(NS)).kind == "refuted", "the guest sees it"


def test_the_level_means_nothing_for_two_gpus_or_near_ones() -> None:
    shm = NCCL_TRANSPORTS.known(NcclTransports(shm=4), lines=(1,))
    assert verdict("nccl_level_too_low", *kvm_guest(OK, 2), shm).kind == "open"
    near = _with(kvm_guest(OK), TOPOLOGY.known(topology(8, "PIX"), lines=(1,)))
    assert verdict("nccl_level_too_low", *near, shm).kind == "open"


def test_links_that_are_all_inactive() -> None:
    dead = NVLINKS.known((NvLinks("GPU0", 0, 12), NvLinks("GPU1", 0, 12)), lines=(1, 9))
    assert verdict("nvlink_fabric_down", dead).kind == "supported"
    part = NVLINKS.known((NvLinks("GPU0", 6, 6), NvLinks("GPU1", 0, 12)), lines=(1, 9))
    assert verdict("nvlink_fabric_down", part).kind == "open"


def test_one_gpu_with_net_has_its_peers_elsewhere() -> None:
    one = GPUS.known(EIGHT[:1], lines=(4,))
    net = NCCL_TRANSPORTS.known(NcclTransports(net=4), lines=(1,))
    assert verdict("nccl_on_network", one, net).kind == "open"
    assert not verdict("nccl_on_network", one).against, "no NET was seen"


@pytest.mark.parametrize(("size_mib", "small"), [(1, True), (63, True), (64, True), (65, False), (1024, False)])
def test_a_containers_default_of_shared_memory_is_64_mib_and_no_more(size_mib: int, small: bool) -> None:
    got = verdict("nccl_on_network", SHM.known(SharedMemory(size_mib), lines=(1,)))
    text = f"shared memory has {size_mib} MiB, a container’s default"
    assert [claim.text for claim in got.for_] == ([text] if small else [])


@pytest.mark.parametrize("seen", [NcclTransports(p2p=4), NcclTransports(shm=4), NcclTransports(p2p=1, shm=2)])
def test_any_connection_beside_none_by_net_refutes_it(seen: NcclTransports) -> None:
    got = verdict("nccl_on_network", NCCL_TRANSPORTS.known(seen, lines=(3,)))
    assert got.kind == "refuted"
    assert [claim.text for claim in got.against] == [
        f"connections in the NCCL log: {seen.p2p} by P2P, {seen.shm} by SHM, none by NET"
    ]
    assert {ref.line for claim in got.against for ref in claim.evidence} == {3}


def test_net_beside_shared_memory_may_lead_to_another_machine() -> None:
    mixed = NCCL_TRANSPORTS.known(NcclTransports(p2p=3, shm=3, net=3), lines=(1,))
    got = verdict("nccl_on_network", mixed)
    assert got.kind == "open"
    assert got.for_
    assert got.against


def test_an_nvlink_guest_is_not_denied_anything() -> None:
    guest = _with(kvm_guest(OK, 2), TOPOLOGY.known(topology(2, "NV18"), lines=(1,)))
    assert verdict("p2p_denied_no_clique", *guest).kind == "refuted"
    assert verdict("p2p_denied_other", *guest).kind == "refuted"
    assert verdict("nvlink_fabric_down", *guest).kind == "refuted"


def test_p2p_switched_off_counts_on_nvlink_as_well() -> None:
    links = TOPOLOGY.known(topology(8, "NV18"), lines=(4,))
    guest = _with(kvm_guest(OK), links)
    off = NCCL_ENV.known({"NCCL_P2P_DISABLE": "1"}, lines=(1,))
    assert verdict("nccl_level_too_low", *guest).kind != "supported"
    found = verdict("nccl_level_too_low", *guest, off)
    assert found.kind == "supported"
    assert "over NVLink" in found.for_[0].text


@pytest.mark.parametrize("name", ["NVIDIA GB200", "NVIDIA B300", "Tesla T4"])
def test_a_model_nobody_showed_with_p2p_over_pcie_stays_open(name: str) -> None:
    assert verdict("p2p_unsupported_gpu", _gpus(name=name)).kind == "open"


@pytest.mark.parametrize(("kind", "refuted"), [("amazon", False), ("google", False), ("xen", True)])
def test_a_cloud_on_kvm_may_well_lack_the_clique(kind: str, refuted: bool) -> None:
    """Amazon's and Google's hypervisors are KVM: that they grant none cannot be ruled out by their name."""
    readings: list[Reading[Any]] = [
        TOPOLOGY.known(topology(8, "PHB")),
        P2P_READ.known(matrix(8, NS)),
        _gpus(name="L40S"),
    ]
    found = verdict("p2p_denied_no_clique", VIRT_KIND.known(kind, lines=(1,)), *readings)
    assert (found.kind == "refuted") is refuted
    other = verdict("p2p_denied_other", VIRT_KIND.known(kind, lines=(1,)), *readings)
    assert "hypervisor that grants its guests no P2P" in other.for_[0].text


def test_a_redirect_elsewhere_is_no_detour() -> None:
    """A root port of another device redirects, and the switch's own ports do not."""
    elsewhere = AcsPort("0000:e0:01.1", True, "ReqRedir+")
    own = AcsPort("0000:01:00.0", False, "ReqRedir-")
    guest = [*kvm_guest(OK), SHARED]
    assert verdict("acs_detour", *guest, ACS.known((elsewhere, own))).kind == "refuted"
    assert verdict("acs_detour", *guest, ACS.known((elsewhere,))).kind == "open"


@pytest.mark.parametrize(
    ("names", "codes", "kind"),
    [
        (("GeForce RTX 3090", "GeForce RTX 3090"), P2P_READ.known(matrix(2, CNS), lines=(1,)), "supported"),
        (("GeForce RTX 3090", "GeForce RTX 3090"), P2P_WRITE.known(matrix(2, CNS), lines=(1,)), "supported"),
        (("GeForce RTX 3090", "GeForce RTX 3090"), P2P_READ.known(matrix(2, NS), lines=(1,)), "open"),
        (("GeForce RTX 3090", "Tesla T4"), P2P_READ.known(matrix(2, CNS), lines=(1,)), "open"),
        (("NVIDIA L40S", "NVIDIA L40S"), P2P_READ.known(matrix(2, CNS), lines=(1,)), "refuted"),
        (("NVIDIA L40S", "GeForce RTX 3090"), P2P_READ.known(matrix(2, CNS), lines=(1,)), "open"),
        (("NVIDIA L40S", "NVIDIA L40S"), P2P_WRITE.known(matrix(2, P2pCode.GNS), lines=(1,)), "supported"),
        ((None, None), P2P_READ.known(matrix(2, CNS), lines=(1,)), "open"),
    ],
)
def test_the_maker_excludes_a_model_and_not_a_machine_that_has_one(
    names: tuple[str | None, ...], codes: Reading[Any], kind: str
) -> None:
    gpus = GPUS.known(tuple(Gpu(index, name=name) for index, name in enumerate(names)), lines=(2,))
    assert verdict("p2p_unsupported_gpu", gpus, codes).kind == kind
