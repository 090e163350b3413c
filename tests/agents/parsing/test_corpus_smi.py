"""Other people's nvidia-smi and NCCL outputs, read as their cases say they must be."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agents.facts.gpu import FABRIC, GPU_COUNT_SMI, GPU_NUMA, GPU_PROCESSES, GPUS
from agents.facts.nccl import NCCL_ENV, NCCL_TRANSPORTS, NCCL_VERSION
from agents.facts.p2p import (
    P2P_ATOMICS,
    P2P_NVLINK,
    P2P_PCIE,
    P2P_READ,
    P2P_WRITE,
    TOPOLOGY,
    WORST_LINK,
    P2pMatrix,
    TopologyMatrix,
)
from agents.facts.platform import DRIVER_VERSION
from agents.framing import clean
from agents.parsing import topo_p2p
from agents.probe import Output
from agents.probes import all_probes
from agents.raw_reading import read_raw
from tests.corpus import CORPUS, MEASUREMENTS, needs_corpus

pytestmark = needs_corpus
GUEST = MEASUREMENTS / "h200x2" / "guest"


@cache
def _expect(number: str) -> dict[str, Any]:
    meta: dict[str, Any] = tomllib.loads((_folder(number) / "case.toml").read_text())["expect"]
    return meta


def _folder(number: str) -> Path:
    return next(CORPUS.glob(f"{number}-*"))


def _values(path: Path) -> dict[str, Any]:
    """Fact id -> known value, of everything recognised in the file as if a person had pasted it."""
    found: dict[str, Any] = {}
    for item in read_raw(path.read_bytes(), role=None, hint="").items:
        found |= {r.fact_id: r.value for r in item.readings if r.kind == "known"}
    return found


def _read(number: str, name: str) -> dict[str, Any]:
    return _values(_folder(number) / name)


def _square(topology: TopologyMatrix) -> list[str]:
    size = len(topology.gpus)
    return [" ".join(link or "X" for link in row[:size]) for row in topology.links[:size]]


TOPOLOGIES = [
    *(("001", "topo-m.txt"), ("001", "topo-m.esc.txt"), ("002", "topo-m.txt"), ("041", "report.txt")),
    *(("044", "collect-env.txt"), ("045", "topo-m.txt"), ("046", "topo-m.txt"), ("050", "topo-m.txt")),
    *(("052", "topo-m.txt"), ("053", "probe.txt"), ("075", "topo-m.txt"), ("078", "topo-m.txt")),
]


@pytest.mark.parametrize(("number", "name"), TOPOLOGIES)
def test_topologies(number: str, name: str) -> None:
    expect, found = _expect(number), _read(number, name)
    topology: TopologyMatrix = found[TOPOLOGY.id]
    links = set(topology.gpu_links().values())
    if "gpu_count" in expect:
        assert len(topology.gpus) == expect["gpu_count"]
    if "topo" in expect:
        assert _square(topology) == expect["topo"]
    uniform = expect.get("topo_gpu_pairs") or expect.get("topo_all_pairs")
    if uniform:
        assert links == {uniform.removeprefix("all ")}
    if "worst_gpu_link" in expect:
        assert found[WORST_LINK.id] == expect["worst_gpu_link"]
    if "nic_count" in expect:
        assert len(topology.devices) - len(topology.gpus) == expect["nic_count"]
    for nic, device in expect.get("nics", {}).items():
        assert dict(topology.nic_names)[nic] == device
    for pair in expect.get("nvlink_pairs", []):
        assert topology.gpu_links()[f"GPU{pair[0]}", f"GPU{pair[1]}"].startswith("NV")
    if "numa" in expect:
        nodes = {n.gpu: n.numa_node for n in found[GPU_NUMA.id]}
        assert {gpu: nodes[gpu] for gpu in expect["numa"]} == expect["numa"]


def test_affinity_and_nearest_nics() -> None:
    for number, name in (("001", "topo-m.esc.txt"), ("078", "topo-m.txt")):
        expect, topology = _expect(number), _read(number, name)[TOPOLOGY.id]
        affinity = dict(zip(topology.devices, topology.cpu_affinity, strict=True))
        for gpu, cpus in expect.get("cpu_affinity", {}).items():
            assert affinity[gpu] == cpus
        near = ("PIX", "PXB")
        for gpu, nic in expect["nearest_nic"].items():
            row = topology.links[topology.devices.index(gpu)]
            by_nic = {d: row[i] for i, d in enumerate(topology.devices) if d.startswith("NIC")}
            closest = min(by_nic, key=lambda d: near.index(by_nic[d]) if by_nic[d] in near else 9)
            assert number != "001" or closest == nic


def test_cut_columns_are_said_to_be_missing() -> None:
    for number in ("045", "046"):
        items = read_raw((_folder(number) / "topo-m.txt").read_bytes(), role=None, hint="").items
        readings = {r.fact_id: r for item in items for r in item.readings}
        assert readings[TOPOLOGY.id].missing == ("columns after GPU7",)
        assert readings[WORST_LINK.id].complete


def test_one_gpu_has_no_farthest_pair() -> None:
    found = _read("053", "probe.txt")
    assert WORST_LINK.id not in found
    assert found[GPUS.id][0].pci_address == _expect("053")["bdf"].lower()
    assert found[GPUS.id][0].name == _expect("053")["gpu_name"]
    assert found[DRIVER_VERSION.id] == _expect("053")["driver"].split()[0]


PEERS = [
    *(("002", "topo-p2p-r.txt", "p2p"), ("005", "topo-p2p-r.txt", "p2p"), ("041", "report.txt", "p2p")),
    *(("007", "topo-p2p.bad.txt", "p2p_bad"), ("007", "topo-p2p.good.txt", "p2p_good")),
    *(("011", "topo-p2p-wr.txt", "p2p"), ("011", "topo-p2p-wr.mangled.txt", "p2p")),
]


@pytest.mark.parametrize(("number", "name", "key"), PEERS)
def test_peer_matrices(number: str, name: str, key: str) -> None:
    expect, found = _expect(number), _read(number, name)
    matrix: P2pMatrix = found[P2P_READ.id]
    codes = set(map(str, matrix.pairs().values()))
    wanted = expect[key]
    assert len(matrix.gpus) == expect["gpu_count"]
    assert codes == ({"OK"} if wanted["summary"] == "all_ok" else {wanted["status"]})
    if "ok_pairs" in wanted:
        assert len(matrix.pairs()) == 2 * wanted["ok_pairs"]
    if "rows_seen" in wanted:
        assert sum(any(row) for row in matrix.codes) == wanted["rows_seen"]
    if set(wanted.get("cap", "")) == {"r", "w"}:
        assert found[P2P_WRITE.id] == matrix


def test_a_lost_gpu_is_listed_and_not_counted() -> None:
    expect, found = _expect("008"), _read("008", "query-gpu.guest.csv")
    lost = [gpu for gpu in found[GPUS.id] if gpu.lost]
    assert found[GPU_COUNT_SMI.id] == expect["gpu_count_nvidia_smi"]
    assert [gpu.index for gpu in lost] == [expect["missing_gpu"]["index"]]
    assert lost[0].pci_address == expect["missing_gpu"]["bdf_guest"]


@pytest.mark.parametrize(("number", "name"), [("002", "query-gpu.csv"), ("041", "report.txt")])
def test_inventories(number: str, name: str) -> None:
    expect, found = _expect(number), _read(number, name)
    assert found[GPU_COUNT_SMI.id] == expect["gpu_count"]
    assert {gpu.name for gpu in found[GPUS.id]} == {expect["gpu_name"]}
    assert found[DRIVER_VERSION.id] == expect["driver"]
    if "link_max" in expect:
        links = {(g.pcie_gen_max, g.pcie_width_max, g.pcie_gen, g.pcie_width) for g in found[GPUS.id]}
        assert {f"Gen{g} x{w}" for g, w, _, _ in links} == {expect["link_max"]}
        assert {f"Gen{g} x{w} (idle)" for _, _, g, w in links} == {expect["link_current"]}


def test_fabric_and_processes() -> None:
    fabric = _read("007", "nvidia-smi-q.good.txt")[FABRIC.id]
    assert f"{fabric.state}/{fabric.status}" == _expect("007")["fabric_state_good"]
    assert fabric.health == _expect("007")["fabric_health_good"]
    processes = _read("052", "nvidia-smi-processes.txt")[GPU_PROCESSES.id]
    assert {process.gpu_index for process in processes} == set(range(_expect("052")["gpu_count"]))


def test_nccl_logs() -> None:
    expect, found = _expect("026"), _read("026", "nccl.log")
    transports = found[NCCL_TRANSPORTS.id]
    assert found[NCCL_VERSION.id] == expect["nccl_version"]
    assert found[NCCL_ENV.id] == expect["env"]
    assert (transports.p2p, transports.shm, transports.net) == (8, 0, 0)
    assert transports.detail == (f"P2P/{expect['transport_detail']}",)
    mixed = _read("028", "nccl.log")[NCCL_TRANSPORTS.id]
    for seen in _expect("028")["transports_seen"]:
        assert any(text.startswith(seen) for text in mixed.detail)
    hanging = _read("081", "nccl.log")
    assert hanging[NCCL_VERSION.id] == _expect("081")["nccl_version"]
    assert hanging[NCCL_TRANSPORTS.id].initialised is _expect("081")["init_complete"]
    assert _read("037", "nccl.log")[NCCL_TRANSPORTS.id].p2p == 1


def test_nccl_logs_of_one_machine_with_and_without_peer_access() -> None:
    peer = _values(GUEST.parent / "nccl-debug-p2p.log")
    shm = _values(GUEST.parent / "nccl-debug-shm.log")
    assert peer[NCCL_TRANSPORTS.id].shm == peer[NCCL_TRANSPORTS.id].net == 0
    assert peer[NCCL_TRANSPORTS.id].detail == ("P2P/CUMEM",)
    assert shm[NCCL_TRANSPORTS.id].p2p == shm[NCCL_TRANSPORTS.id].net == 0
    assert shm[NCCL_ENV.id]["NCCL_P2P_DISABLE"] == "1"
    assert {peer[NCCL_TRANSPORTS.id].nodes, shm[NCCL_TRANSPORTS.id].nodes} == {1}
    assert peer[NCCL_VERSION.id] == shm[NCCL_VERSION.id] == "2.28.9+cuda13.0"


def test_an_nvlink_guest() -> None:
    """Reads, writes, NVLink and atomics OK while the PCIe property says NS, and no fault."""
    facts = {"r": P2P_READ, "w": P2P_WRITE, "n": P2P_NVLINK, "a": P2P_ATOMICS, "p": P2P_PCIE}
    names = dict(zip("rwnap", ("read", "write", "nvlink", "atomics", "pcie"), strict=True))
    for letter, fact in facts.items():
        raw = (GUEST / f"topo-p2p-{letter}.txt").read_bytes()
        (reading,) = all_probes()[f"guest.topo_p2p_{names[letter]}"].parse(Output(clean(raw)))
        assert reading.fact_id == fact.id
        assert reading.value is not None
        assert set(map(str, reading.value.pairs().values())) == {"NS" if letter == "p" else "OK"}
    found = _values(GUEST / "smi-q.txt")
    assert [gpu.virtualisation_mode for gpu in found[GPUS.id]] == ["Pass-Through"] * 2
    assert found[FABRIC.id].state == "Completed"
    csv, table = _values(GUEST / "smi-csv.txt"), _values(GUEST / "smi.txt")
    for other in (csv, table):
        assert other[DRIVER_VERSION.id] == found[DRIVER_VERSION.id]
        for a, b in zip(other[GPUS.id], found[GPUS.id], strict=True):
            assert (a.name, a.pci_address, a.vram_mib) == (b.name, b.pci_address, b.vram_mib)
    assert table[GPU_PROCESSES.id] == ()
    links = _values(GUEST / "nvlink-status.txt")["guest.nvlinks"]
    assert [(link.active, link.inactive) for link in links] == [(18, 0), (18, 0)]


def test_no_other_output_is_taken_for_a_matrix() -> None:
    for path in CORPUS.glob("*/*.txt"):
        if "topo" in path.name or path.name == "report.txt":
            continue
        assert topo_p2p.parse(clean(path.read_bytes())) is None, path.name
