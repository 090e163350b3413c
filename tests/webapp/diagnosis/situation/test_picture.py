"""The host's tree beside the guest's, and what is counted of the GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import COPY, SERVING, CopyPath, CopyResult, CopyRow, ServingRow, Timing
from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS, PCI_GPUS, Gpu, PciGpu
from agents.facts.host import ACS, GPU_PATHS, IOMMU_GROUPS, PCI_TREE, AcsPort, GpuPath, IommuGroup, PciNode
from agents.facts.p2p import P2P_READ, TOPOLOGY, P2pCode, TopologyMatrix
from agents.facts.platform import VIRT_KIND
from agents.facts.workload import OBSERVED, Observed
from tests.webapp.diagnosis.building import facts_of, matrix, sourced, topology
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation.copy_curve import copy_curve, time_at
from webapp.diagnosis.situation.copy_fit import CopyFit, WayFit, copy_fit, way_fits
from webapp.diagnosis.situation.gpus import listing, load, tokens_flow
from webapp.diagnosis.situation.topology import draw, peer_redirects, short

PATH = GpuPath("0000:41:00.0", "0000:40", "0000:40:01.1", iommu_group=7, link="32 GT/s x16", numa_node=1)
SWITCHED = GpuPath("0000:05:00.0", "0000:00", "0000:00:01.1", switch="0000:02:00.0")


def test_the_hosts_side_has_each_gpu_where_it_is_wired() -> None:
    groups = IOMMU_GROUPS.known((IommuGroup(12, ("0000:05:00.0",)),), lines=(1,))
    picture = draw(facts_of(GPU_PATHS.known((PATH, SWITCHED), lines=(1,)), groups))
    first, second = picture.host
    assert (first.address, first.group, first.switch, first.numa_node) == (
        "0000:05:00.0", "group 12", "0000:02:00.0", None
    )  # fmt: skip
    assert (second.port, second.group, second.link) == ("0000:40:01.1", "group 7", "32 GT/s x16")
    assert any("guest’s GPUs are unknown" in note for note in picture.notes)
    assert not any("host’s side is unknown" in note for note in picture.notes)


def test_the_guests_side_is_known_from_the_driver_or_else_from_the_bus() -> None:
    bus = PCI_GPUS.known((PciGpu("0000:01:00.0"),), lines=(1,))
    smi = GPUS.known((Gpu(0, pci_address="0000:01:00.0"), Gpu(1)), lines=(1,))
    assert [gpu.name for gpu in draw(facts_of(bus)).guest] == ["GPU at 01:00.0"]
    by_driver = draw(facts_of(bus, smi))
    assert [(gpu.name, gpu.address) for gpu in by_driver.guest] == [("GPU 0", "0000:01:00.0"), ("GPU 1", "")]
    assert any("host’s side is unknown" in note for note in by_driver.notes)


@pytest.mark.parametrize(
    ("kind", "emulated", "bare"), [(None, False, False), ("none", False, True), ("kvm", True, False)]
)
def test_a_tree_is_emulated_in_a_vm_alone(kind: str | None, emulated: bool, bare: bool) -> None:
    picture = draw(facts_of(*([VIRT_KIND.known(kind)] if kind else [])))
    assert (picture.emulated, picture.bare) == (emulated, bare)


def links(**near: str) -> TopologyMatrix:
    names = ("GPU0", "GPU1", "GPU2", "GPU3", "GPU4")
    cell = {frozenset({f"GPU{pair[1]}", f"GPU{pair[2]}"}): link for pair, link in near.items()}
    return TopologyMatrix(names, tuple(tuple(cell.get(frozenset({a, b}), "SYS") if a != b else None for b in names)
                                       for a in names))  # fmt: skip


@pytest.mark.parametrize(
    ("matrix_of", "bridges"),
    [
        (links(), ["", "", "", "", ""]),
        (links(p01="PIX", p23="PXB"), ["bridge 1", "bridge 1", "bridge 2", "bridge 2", ""]),
        (links(p04="PIX", p14="PXB"), ["bridge 1", "bridge 1", "", "", "bridge 1"]),
        (links(p01="PHB", p34="PIX"), ["", "", "", "bridge 1", "bridge 1"]),
    ],
)
def test_gpus_below_one_bridge(matrix_of: TopologyMatrix, bridges: list[str]) -> None:
    gpus = GPUS.known(tuple(Gpu(index) for index in range(5)), lines=(1,))
    assert [gpu.bridge for gpu in draw(facts_of(gpus, TOPOLOGY.known(matrix_of, lines=(1,)))).guest] == bridges


@pytest.mark.parametrize(
    ("path", "ports", "answer"),
    [
        (PATH, {"0000:40:01.1": True}, True),
        (PATH, {"0000:40:01.1": False}, False),
        (PATH, {"0000:00:01.1": True}, None),
        (SWITCHED, {"0000:03:00.0": True, "0000:00:01.1": False}, True),
        (SWITCHED, {"0000:03:00.0": False, "0000:00:01.1": True}, False),
        (SWITCHED, {"0000:00:01.1": True}, None),
    ],
)
def test_below_a_switch_its_own_ports_decide(path: GpuPath, ports: dict[str, bool], answer: bool | None) -> None:
    acs = ACS.known(tuple(AcsPort(address, redirect, "") for address, redirect in ports.items()), lines=(1,))
    tree = PciNode("0000:05:00.0", "0000:00", ("0000:00:01.1", "0000:02:00.0", "0000:03:00.0"))
    assert peer_redirects(facts_of(acs, PCI_TREE.known((tree,), lines=(1,))))(path) is answer


def test_an_address_is_short_without_its_domain_of_zeros() -> None:
    assert [short(a) for a in ("0000:01:00.0", "00000000:01:00.0", "0001:01:00.0")] == [
        "01:00.0", "01:00.0", "0001:01:00.0"
    ]  # fmt: skip


def counted(smi: int, bus: int, *, bus_epoch: int = 0, missing: tuple[str, ...] = ()) -> list[Any]:
    listed = GPU_COUNT_SMI.known(smi, lines=(1,), missing=missing)
    return [*sourced(listed), *sourced(GPU_COUNT_PCI.known(bus, lines=(1,)), epoch=bus_epoch)]


@pytest.mark.parametrize(
    ("items", "every", "short_of"),
    [
        (counted(8, 8), True, False),
        (counted(7, 8), False, True),
        (counted(0, 0), False, False),
        (counted(9, 8), False, False),
        (counted(7, 8, bus_epoch=1), False, False),
        (counted(7, 8, missing=("the rest",)), False, False),
    ],
)
def test_the_driver_lists_fewer_than_are_there(items: list[Any], every: bool, short_of: bool) -> None:
    found = listing(Facts.of(items))
    assert found is not None
    assert (found.every, found.short) == (every, short_of)


def test_a_later_matrix_of_more_gpus_shows_that_the_list_was_a_part() -> None:
    later = sourced(GPU_COUNT_SMI.known(7, lines=(1,)), GPU_COUNT_PCI.known(8, lines=(1,)),
                    P2P_READ.known(matrix(8, P2pCode.OK), lines=(1,)))  # fmt: skip
    found = listing(Facts.of(later))
    assert found is not None
    assert not found.whole
    assert listing(facts_of(GPU_COUNT_SMI.known(8))) is None
    assert listing(facts_of(GPU_COUNT_PCI.known(8))) is None


def test_load_is_the_idlest_the_hungriest_the_hottest_and_the_slowest() -> None:
    rows = (
        Gpu(0, utilisation_percent=99, power_w=150, power_limit_w=600, temperature_celsius=60,
            sm_clock_mhz=2000, sm_clock_max_mhz=2500),
        Gpu(1, utilisation_percent=90, power_w=300, power_limit_w=600, temperature_celsius=80,
            sm_clock_mhz=1000, sm_clock_max_mhz=2500),
        Gpu(2, utilisation_percent=5, power_w=600, power_limit_w=600, temperature_celsius=95, lost=True),
        Gpu(3, power_w=500, power_limit_w=None, sm_clock_mhz=10),
    )  # fmt: skip
    seen = load(facts_of(GPUS.known(rows, lines=(1,))))
    assert (seen.busy_percent, seen.power_share, seen.temperature_celsius, seen.clock_share) == (90, 0.5, 80, 0.4)
    assert seen.busy
    idle = load(facts_of(GPUS.known((Gpu(0, utilisation_percent=89),), lines=(1,))))
    assert not idle.busy
    assert not load(facts_of()).busy


@pytest.mark.parametrize(
    ("readings", "flow"),
    [
        ((), None),
        ((SERVING.known((ServingRow(1, 0.0),)),), False),
        ((SERVING.known((ServingRow(1, None),)),), None),
        ((SERVING.known((ServingRow(1, 0.0), ServingRow(4, 9.0))),), True),
        ((OBSERVED.known((Observed(1, (0.0, 0.0)),)),), False),
        ((OBSERVED.known((Observed(1, (0.0, 5.0)),)),), True),
    ],
)
def test_whether_any_token_came_out(readings: tuple[Reading[Any], ...], flow: bool | None) -> None:
    assert tokens_flow(facts_of(*readings)) is flow


def row(size: int, us: float, path: CopyPath = CopyPath.PEER, timing: Timing = Timing.DEVICE, **more: Any) -> CopyRow:
    return CopyRow(path, "0", "1", size, us, timing, **more)


@pytest.mark.parametrize(
    ("size", "us"), [(1, 4.0), (1000, 4.0), (10_000, 8.0), (100_000, 16.0), (31_622.8, 11.31), (100_001, None)]
)
def test_a_time_between_two_sizes_lies_on_log_axes(size: float, us: float | None) -> None:
    found = time_at(((1000, 4.0), (10_000, 8.0), (100_000, 16.0)), size)
    assert found == (us if us is None else pytest.approx(us, rel=1e-3))
    assert time_at((), 1) is None


def test_a_curve_is_of_peer_copies_of_the_newest_epoch_by_the_devices_clock() -> None:
    rows = (row(4096, 9.0), row(4096, 7.0), row(8192, 1.0, timing=Timing.HOST_SYNC), row(0, 1.0),
            row(16384, 5.0, CopyPath.STAGED))  # fmt: skip
    old, new = (COPY.known(CopyResult(of), lines=(1,)) for of in ((row(4096, 1.0),), rows))
    curve = copy_curve(Facts.of([*sourced(old, epoch=0), *sourced(new, epoch=1)]))
    assert curve is not None
    assert curve.points == ((4096, 7.0),)
    host_only = copy_curve(facts_of(COPY.known(CopyResult((row(8192, 3.0, timing=Timing.HOST_SYNC),)))))
    assert host_only is not None
    assert (host_only.points, host_only.device_timed) == (((8192, 3.0),), False)
    assert copy_curve(facts_of(COPY.known(CopyResult((row(4096, 5.0, CopyPath.STAGED),))))) is None


def test_a_line_through_copies_has_a_latency_and_a_bandwidth() -> None:
    fit = copy_fit([(size, 3.0 + size / 50e3) for size in (4096, 65536, 1 << 20)])
    assert fit is not None
    assert fit.latency_us == pytest.approx(3.0)
    assert fit.bandwidth_gb_per_s == pytest.approx(50.0)
    assert fit.time_us(50_000) == pytest.approx(4.0)
    assert fit.knee_bytes == pytest.approx(150_000)
    assert not fit.rough


@pytest.mark.parametrize(
    "points",
    [
        [(4096, 3.0), (65536, 4.0)],
        [(4096, 3.0), (8192, 3.1), (16384, 3.3)],
        [(4096, 9.0), (65536, 6.0), (1 << 20, 3.0)],
    ],
)
def test_no_line_through_few_sizes_close_sizes_or_falling_times(points: list[tuple[int, float]]) -> None:
    assert copy_fit(points) is None


def test_a_fit_is_rough_where_a_size_is_off_by_more_than_a_quarter() -> None:
    assert not CopyFit(1.0, 1.0, ((1, 0.25), (2, -0.25))).rough
    assert CopyFit(1.0, 1.0, ((1, 0.0), (2, -0.26))).rough
    rough = WayFit("way", CopyFit(1.0, 1.0, ((1, 0.31),)), 1)
    assert rough.note == "rough: up to 31 % off; 1 unstable size left out"
    assert WayFit("way", CopyFit(1.0, 1.0, ((1, 0.1),)), 2).note == "2 unstable sizes left out"
    assert WayFit("way", CopyFit(2.0, 100.0, ()), 0).knee_kib == 195


def test_a_way_keeps_its_unstable_sizes_out_and_counts_them() -> None:
    times = {4096: 3.1, 65536: 4.3, 1 << 20: 24.0}
    steady = [row(size, us, peer_access=False) for size, us in times.items()]
    (way,) = way_fits([*steady, row(2 << 20, 900.0, peer_access=False, unstable=True), row(4096, 1.0, CopyPath.SAME)])
    assert (way.way, way.left_out) == ("GPU 0 to 1, peer access off", 1)
    assert way_fits([row(size, us, timing=Timing.HOST_SYNC) for size, us in times.items()]) == ()


def test_links_of_other_sizes_are_no_bridges() -> None:
    gpus = GPUS.known((Gpu(0), Gpu(1)), lines=(1,))
    assert [g.bridge for g in draw(facts_of(gpus, TOPOLOGY.known(topology(2, "NV4"), lines=(1,)))).guest] == ["", ""]
