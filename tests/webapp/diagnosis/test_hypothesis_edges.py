"""One row an input on one side of a rule, with the verdict that it must give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import PROFILE, SERVING, TELEMETRY, GpuTelemetry, Profile, ServingRow, Timing
from agents.facts.gpu import (
    BAR_FAILURES,
    BARS,
    FABRIC,
    GPU_COUNT_PCI,
    GPU_COUNT_SMI,
    GPU_NUMA,
    GPUS,
    NVLINKS,
    PCI_GPUS,
    XID_EVENTS,
    Bar,
    BarFailure,
    Fabric,
    Gpu,
    GpuNuma,
    NvLinks,
    PciGpu,
    XidEvent,
)
from agents.facts.host import ACS, GPU_PATHS, PLATFORM, AcsPort, GpuPath, Platform
from agents.facts.kernels import LAUNCH, Figures, LaunchResult, LaunchRow, Work
from agents.facts.nccl import ENGINE, NCCL_TRANSPORTS, Engine, NcclTransports
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode, TopologyMatrix
from agents.facts.platform import KVM_VISIBLE, MEMORY_MIB, NUMA_NODES, PHYS_BITS, VIRT_KIND, NumaNode
from agents.facts.vm import VM_CPU_HIDDEN, VM_NUMA
from agents.facts.workload import MODEL, OBSERVED, Model, Observed
from tests.webapp.diagnosis.building import kvm_guest, matrix, sourced, topology
from tests.webapp.diagnosis.hypothesis_cases import assess, verdict
from webapp.diagnosis.case import Bound
from webapp.diagnosis.facts import Facts

OK, NS = P2pCode.OK, P2pCode.NS
Given = Sequence[Reading[Any] | Bound]


def in_turn(hypothesis_id: str, *epochs: Sequence[Reading[Any]]) -> str:
    """The verdict when these were read one after the other, with a change between them."""
    items = [item for epoch, readings in enumerate(epochs) for item in sourced(*readings, epoch=epoch)]
    return str(assess(hypothesis_id, Facts.of(items)).kind)


def gpu(**fields: Any) -> Reading[Any]:
    return GPUS.known((Gpu(0, **fields),), lines=(1,))


def load(power_w: float | None, celsius: int | None = None, clock: int | None = None, busy: int = 99) -> Reading[Any]:
    limits = {"power_limit_w": 600.0, "sm_clock_max_mhz": 1000}
    return gpu(utilisation_percent=busy, power_w=power_w, temperature_celsius=celsius, sm_clock_mhz=clock, **limits)


def profile(nccl: float = 0.0, kernels: float = 0.0, gaps: float = 0.0) -> Reading[Any]:
    return PROFILE.known(Profile(nccl, kernels, 0.0, 0.0, gaps), lines=(1,))


def bound(concurrency: int = 1, **parts: tuple[float, float]) -> Bound:
    return Bound(concurrency, step_ms=parts.pop("step", (100.0, 100.0)), **parts)  # type: ignore[arg-type]


def shares(low: float, high: float) -> Bound:
    return bound(comm_ms=(low * 100, high * 100), floor_ms=(low * 100, high * 100))


MODEL_GIVEN = MODEL.known(Model(hidden_size=8192, activation_bytes=2, layers=80), lines=(1,))
LISTED, ON_BUS = GPU_COUNT_SMI.known(8, lines=(1,)), GPU_COUNT_PCI.known(8, lines=(1,))
SILENT, FLOWS = (OBSERVED.known((Observed(1, (speed, speed)),), lines=(1,)) for speed in (0.0, 9.0))
FAILURE = BAR_FAILURES.known((BarFailure("0000:01:00.0", 1, "can't assign; no space"),), lines=(1,))
EMPTY_BAR = BARS.known((Bar("0000:01:00.0", 1, 0),), lines=(1,))
ONES = PCI_GPUS.known((PciGpu("0000:01:00.0", revision="FF"), PciGpu("0000:02:00.0", revision="a1")), lines=(1,))
FELL = XID_EVENTS.known((XidEvent("0000:01:00.0", 79, "GPU has fallen off the bus"),), lines=(1,))
HIDES, SHOWS = VM_CPU_HIDDEN.known(True, lines=(1,)), VM_CPU_HIDDEN.known(False, lines=(1,))
SEES = (VIRT_KIND.known("kvm", lines=(1,)), KVM_VISIBLE.known(True, lines=(1,)))
SEES_NOT = (VIRT_KIND.known("qemu", lines=(1,)), KVM_VISIBLE.known(False, lines=(1,)))
NODES = NUMA_NODES.known((NumaNode(0, "0-7"), NumaNode(1, "8-15")), lines=(1,))
NVLINK = TOPOLOGY.known(topology(2, "NV18"), lines=(1,))
NVLINK_OK = (NVLINK, P2P_READ.known(matrix(2, OK), lines=(1,)), P2P_WRITE.known(matrix(2, OK), lines=(1,)))


def inactive(*counts: tuple[int, int]) -> Reading[Any]:
    return NVLINKS.known(tuple(NvLinks(f"GPU{i}", up, down) for i, (up, down) in enumerate(counts)), lines=(1,))


def affinity(*nodes: str | None) -> Reading[Any]:
    names = (*(f"GPU{i}" for i in range(len(nodes) - 1)), "NIC0")
    links = tuple(tuple(None if a == b else "SYS" for b in names) for a in names)
    return TOPOLOGY.known(TopologyMatrix(names, links, (), nodes), lines=(1,))


def paths(*switches: str | None) -> Reading[Any]:
    rows = (GpuPath(f"0000:0{i}:00.0", "0000:00", f"0000:00:0{i}.0", switch=s) for i, s in enumerate(switches, 1))
    return GPU_PATHS.known(tuple(rows), lines=(1,))


def ports(*redirects: tuple[str, bool]) -> Reading[Any]:
    return ACS.known(tuple(AcsPort(address, redirect, "") for address, redirect in redirects), lines=(1,))


EDGES: list[tuple[str, str, Given]] = [
    ("communication_latency_bound", "supported", [shares(0.3, 0.9)]),
    ("communication_latency_bound", "open", [shares(0.29, 0.9)]),
    ("communication_latency_bound", "refuted", [shares(0.01, 0.1)]),
    ("communication_latency_bound", "open", [shares(0.01, 0.11)]),
    ("communication_latency_bound", "supported", [profile(nccl=30.0, gaps=70.0)]),
    ("communication_latency_bound", "open", [profile(nccl=29.0, gaps=71.0)]),
    ("communication_latency_bound", "refuted", [profile(nccl=10.0, gaps=90.0)]),
    ("communication_latency_bound", "open", [bound(comm_ms=(1.0, 2.0), step=(0.0, 0.0))]),
    ("communication_bandwidth_bound", "refuted", [MODEL_GIVEN, bound(15, comm_ms=(50.0, 60.0))]),
    ("communication_bandwidth_bound", "supported", [MODEL_GIVEN, bound(16, comm_ms=(30.0, 60.0))]),
    ("communication_bandwidth_bound", "open", [MODEL_GIVEN, bound(16, comm_ms=(29.0, 60.0))]),
    ("communication_bandwidth_bound", "refuted", [MODEL_GIVEN, bound(16, comm_ms=(1.0, 10.0))]),
    ("communication_bandwidth_bound", "open", [MODEL_GIVEN, bound(16)]),
    ("memory_bandwidth_bound", "supported", [shares(0.6, 0.9)]),
    ("memory_bandwidth_bound", "open", [shares(0.59, 0.9)]),
    ("memory_bandwidth_bound", "refuted", [shares(0.1, 0.25)]),
    ("memory_bandwidth_bound", "open", [shares(0.1, 0.26)]),
    ("memory_bandwidth_bound", "open", [bound()]),
    ("launch_bound", "supported", [profile(gaps=30.0, kernels=70.0)]),
    ("launch_bound", "open", [profile(gaps=29.0, kernels=71.0)]),
    ("launch_bound", "refuted", [profile(gaps=10.0, kernels=90.0)]),
    ("launch_bound", "open", [profile(gaps=11.0, kernels=89.0)]),
    ("compute_bound", "refuted", [profile(kernels=50.0, gaps=50.0)]),
    ("compute_bound", "open", [profile(kernels=51.0, gaps=49.0)]),
    ("compute_bound", "supported", [profile(kernels=60.0, gaps=40.0), bound(), bound(4, step=(200.0, 200.0))]),
    ("compute_bound", "open", [profile(kernels=60.0, gaps=40.0), bound(), bound(4, step=(190.0, 190.0))]),
    ("compute_bound", "refuted", [profile(kernels=10.0, gaps=90.0), bound(), bound(4, step=(400.0, 400.0))]),
    ("hang", "supported", [load(149.0), SILENT]),
    ("hang", "open", [load(150.0), SILENT]),
    ("hang", "open", [load(149.0)]),
    ("hang", "open", [load(149.0, busy=50), SILENT]),
    ("hang", "open", [load(None), SILENT]),
    ("hang", "refuted", [load(149.0), FLOWS]),
    ("power_or_thermal_limit", "supported", [load(582.0)]),
    ("power_or_thermal_limit", "open", [load(581.0)]),
    ("power_or_thermal_limit", "open", [load(480.0)]),
    ("power_or_thermal_limit", "refuted", [load(480.0, celsius=84)]),
    ("power_or_thermal_limit", "open", [load(481.0, celsius=84)]),
    ("power_or_thermal_limit", "open", [load(480.0, celsius=85)]),
    ("power_or_thermal_limit", "refuted", [load(480.0, clock=700)]),
    ("power_or_thermal_limit", "open", [load(480.0, clock=699)]),
    ("power_or_thermal_limit", "supported", [load(300.0, celsius=85, clock=699)]),
    ("power_or_thermal_limit", "open", [load(300.0, celsius=85, clock=700)]),
    ("power_or_thermal_limit", "refuted", [load(300.0, celsius=84, clock=699)]),
    ("power_or_thermal_limit", "open", [load(599.0, busy=50)]),
    ("pcie_link_degraded", "supported", [gpu(pcie_width=8, pcie_width_max=16)]),
    ("pcie_link_degraded", "open", [gpu(pcie_gen=1, pcie_gen_max=5, utilisation_percent=0)]),
    ("pcie_link_degraded", "supported", [gpu(pcie_gen=4, pcie_gen_max=5, utilisation_percent=99)]),
    ("pcie_link_degraded", "open", [gpu(pcie_gen=5, pcie_gen_max=5)]),
    ("pcie_link_degraded", "refuted", [gpu(pcie_gen=5, pcie_gen_max=5, pcie_width=16, pcie_width_max=16)]),
    ("pcie_link_degraded", "open", [gpu(pcie_width=8, pcie_width_max=16, lost=True)]),
    ("pcie_link_degraded", "open", [gpu(pcie_width=8)]),
    ("numa_misplacement", "refuted", [NODES, affinity("0", "1", None)]),
    ("numa_misplacement", "supported", [NODES, affinity("0", None, None)]),
    ("numa_misplacement", "refuted", [NODES, GPU_NUMA.known((GpuNuma("GPU0", 1),), lines=(1,))]),
    ("numa_misplacement", "supported", [NODES, GPU_NUMA.known((GpuNuma("GPU0", None),), lines=(1,))]),
    ("numa_misplacement", "open", [NODES]),
    ("nccl_on_network", "supported", [NCCL_TRANSPORTS.known(NcclTransports(net=4), lines=(1,))]),
    ("nccl_on_network", "open", [NCCL_TRANSPORTS.known(NcclTransports(net=4, p2p=2), lines=(1,))]),
    ("nccl_on_network", "open", [NCCL_TRANSPORTS.known(NcclTransports(net=4, shm=2), lines=(1,))]),
    ("nccl_on_network", "refuted", [NCCL_TRANSPORTS.known(NcclTransports(p2p=2), lines=(1,))]),
    ("nccl_on_network", "open", [NCCL_TRANSPORTS.known(NcclTransports(), lines=(1,))]),
    ("nvlink_fabric_down", "supported", [inactive((0, 18), (0, 18))]),
    ("nvlink_fabric_down", "open", [inactive((0, 18), (18, 0))]),
    ("nvlink_fabric_down", "open", [inactive((1, 17))]),
    ("nvlink_fabric_down", "open", [inactive((0, 0))]),
    ("nvlink_fabric_down", "supported", [FABRIC.known(Fabric("In Progress"), lines=(1,))]),
    ("gpu_lost", "supported", [ONES]),
    ("gpu_lost", "refuted", [LISTED, ON_BUS]),
    ("gpu_lost", "supported", [GPU_COUNT_SMI.known(7, lines=(1,)), ON_BUS]),
    ("bar_space_shortage", "supported", [FAILURE]),
    ("bar_space_shortage", "supported", [EMPTY_BAR]),
    ("bar_space_shortage", "refuted", [BARS.known((Bar("0000:01:00.0", 1, 256),), lines=(1,))]),
    ("bar_space_shortage", "refuted", [BAR_FAILURES.absent("none", lines=(1,))]),
    ("bar_space_shortage", "refuted", [LISTED, ON_BUS]),
    ("kvm_hidden", "refuted", [*SEES]),
    ("kvm_hidden", "supported", [*SEES_NOT]),
    ("kvm_hidden", "supported", [HIDES]),
    ("kvm_hidden", "open", [SHOWS]),
    ("kvm_hidden", "refuted", [VIRT_KIND.known("none", lines=(1,))]),
    ("acs_detour", "refuted", [*kvm_guest(OK), paths("0000:02:00.0", "0000:03:00.0", None)]),
    ("acs_detour", "open", [*kvm_guest(OK), paths("0000:02:00.0", "0000:02:00.0")]),
]


@pytest.mark.parametrize(("hypothesis_id", "kind", "given"), EDGES)
def test_each_side_of_a_rule(hypothesis_id: str, kind: str, given: Given) -> None:
    assert verdict(hypothesis_id, *given).kind == kind


@pytest.mark.parametrize(
    ("hypothesis_id", "kind", "first", "then"),
    [
        ("kvm_hidden", "supported", SEES, (HIDES,)),
        ("kvm_hidden", "open", SEES_NOT, (SHOWS,)),
        ("kvm_hidden", "refuted", (HIDES,), SEES),
        ("kvm_hidden", "supported", (SHOWS,), SEES_NOT),
        ("nvlink_fabric_down", "refuted", (inactive((0, 18), (0, 18)),), NVLINK_OK),
        ("nvlink_fabric_down", "supported", NVLINK_OK, (inactive((0, 18), (0, 18)),)),
        ("gpu_lost", "refuted", (ONES,), (LISTED, ON_BUS)),
        ("gpu_lost", "refuted", (FELL,), (LISTED, ON_BUS)),
        ("gpu_lost", "supported", (LISTED, ON_BUS), (FELL,)),
        ("gpu_lost", "supported", (LISTED, ON_BUS), (ONES,)),
        ("bar_space_shortage", "refuted", (FAILURE,), (LISTED, ON_BUS)),
        ("bar_space_shortage", "supported", (LISTED, ON_BUS), (FAILURE,)),
        ("bar_space_shortage", "refuted", (EMPTY_BAR,), (LISTED, ON_BUS)),
        ("bar_space_shortage", "supported", (LISTED, ON_BUS), (EMPTY_BAR,)),
    ],
)
def test_what_was_read_later_decides(
    hypothesis_id: str, kind: str, first: Sequence[Reading[Any]], then: Sequence[Reading[Any]]
) -> None:
    assert in_turn(hypothesis_id, first, then) == kind


@pytest.mark.parametrize(("bits", "gib", "short"), [(40, 96, True), (40, 64, False), (52, 96, False), (41, 96, False)])
def test_address_bits_for_eight_cards(bits: int, gib: int, short: bool) -> None:
    cards = GPUS.known(tuple(Gpu(i, vram_mib=gib * 1024 - 300) for i in range(8)), lines=(1,))
    memory = MEMORY_MIB.known(512 * 1024 - 1, lines=(1,))
    got = verdict("bar_space_shortage", cards, PHYS_BITS.known(bits, lines=(1,)), memory)
    assert bool(got.for_) is short
    # 8 regions of 128 GiB and 512 GiB of RAM.
    assert not short or "1.50 TiB" in got.for_[0].text


@pytest.mark.parametrize(
    ("acs", "kind"),
    [
        (ports(("0000:00:01.0", True)), "open"),
        (ports(("0000:02:00.0", False)), "refuted"),
        (ports(("0000:02:00.0", True)), "supported"),
        (ports(("0000:09:00.0", True)), "open"),
    ],
)
def test_the_ports_below_a_shared_switch_decide(acs: Reading[Any], kind: str) -> None:
    shared = paths("0000:02:00.0", "0000:02:00.0", None)
    assert verdict("acs_detour", *kvm_guest(OK, 3), shared, acs).kind == kind


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"--enforce-eager": ""}, True),
        ({"--enforce_eager": "true"}, True),
        ({"--disable-cuda-graph": "1"}, True),
        ({"--enforce-eager": "False"}, False),
        ({"--tp": "8"}, False),
    ],
)
def test_a_flag_that_turns_graphs_off_speaks_for_launches(flags: dict[str, str], told: bool) -> None:
    got = verdict("launch_bound", ENGINE.known(Engine("vllm", flags=flags), lines=(1,)))
    assert (got.kind, bool(got.for_)) == ("open", told)


def test_launches_are_counted_a_layer() -> None:
    figures = Figures(5.0, Timing.HOST_SYNC, "no_wait", unstable=True, ci_low_us=4.0, ci_high_us=7.0)
    launch = LAUNCH.known(LaunchResult((LaunchRow(Work.OPERATION, "0", figures),)), lines=(1,))
    got = verdict("launch_bound", launch, MODEL_GIVEN, bound(unexplained_ms=(1.0, 20.0)))
    assert got.share_ms == (0.0, 20.0)
    # 20 ms ÷ 5 µs ÷ 80 layers
    assert "starts 50 a layer" in got.for_[-1].text
    assert "4.0 to 7.0" in got.for_[-1].text


def test_a_load_test_shows_that_tokens_come_out() -> None:
    serving = SERVING.known((ServingRow(1, 20.0),), lines=(1,))
    assert verdict("hang", load(100.0), serving).kind == "refuted"


@pytest.mark.parametrize(("reason", "percent", "kind"), [("hardware slowdown", 10.0, "supported"),
                                                         ("hardware slowdown", 9.9, "open"),
                                                         ("idle", 50.0, "open")])  # fmt: skip
def test_what_slowed_the_clocks(reason: str, percent: float, kind: str) -> None:
    seen = TELEMETRY.known((GpuTelemetry("0", 20, throttle_reasons=(reason,), throttled_percent=percent),), lines=(1,))
    assert verdict("power_or_thermal_limit", seen).kind == kind


@pytest.mark.parametrize(
    ("sockets", "numa", "kind", "spans"),
    [(2, False, "open", True), (2, True, "open", False), (1, False, "refuted", False), (None, False, "open", False)],
)
def test_one_node_in_the_guest(sockets: int | None, numa: bool, kind: str, spans: bool) -> None:
    one = NUMA_NODES.known((NumaNode(0, "0-7"),), lines=(1,))
    host = PLATFORM.known(Platform(sockets=sockets), lines=(1,))
    got = verdict("numa_misplacement", *kvm_guest(), one, host, VM_NUMA.known(numa, lines=(1,)))
    assert (got.kind, bool(got.for_)) == (kind, spans)


def test_the_one_that_is_lost_is_named() -> None:
    cards = GPUS.known((Gpu(0), replace(Gpu(1), lost=True)), lines=(1,))
    got = verdict("gpu_lost", cards)
    assert got.for_[0].text.startswith("the driver lists GPU 1 ")
    bus = verdict("gpu_lost", ONES)
    assert "0000:01:00.0" in bus.for_[0].text
    assert "0000:02:00.0" not in bus.for_[0].text
