"""Real outputs that say what kind of machine it was, against what a correct reader gets."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from agents.facts import Fact, Reading, ReadingKind
from agents.facts.gpu import BAR_FAILURES, GPU_COUNT_PCI, PCI_GPUS, XID_EVENTS
from agents.facts.host import GUEST_PCI_TREE
from agents.facts.platform import (
    CPU_MODEL,
    GUEST_IOMMU,
    KERNEL_CMDLINE,
    KVM_VISIBLE,
    MACHINE_TYPE,
    NUMA_NODES,
    PHYS_BITS,
    SHM,
    VIRT_KIND,
)
from agents.framing import clean
from agents.parsing import lspci, sysfs_pci
from agents.probe import Output
from agents.probes import all_probes
from tests.corpus import CORPUS, MEASUREMENTS, needs_corpus

pytestmark = needs_corpus


def _case(number: str) -> Path:
    return next(CORPUS.glob(f"{number}-*"))


def _expect(number: str) -> dict[str, Any]:
    expect: dict[str, Any] = tomllib.loads((_case(number) / "case.toml").read_text())["expect"]
    return expect


def _read(probe: str, path: Path) -> dict[str, Reading[Any]]:
    output = Output(clean(path.read_bytes()), exit_code=None, alternative=-1)
    return {reading.fact_id: reading for reading in all_probes()[probe].parse(output)}


def _value(probe: str, path: Path, fact: Fact[Any]) -> Any:
    reading = _read(probe, path)[fact.id]
    assert reading.kind is ReadingKind.KNOWN, reading.detail
    return reading.value


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("dmesg-hyperv.txt", "hyperv"),
        ("dmesg-qemu-i440fx.txt", "qemu_i440fx"),
        ("dmesg-qemu-i440fx-rel.txt", "qemu_i440fx"),
        ("dmesg-qemu-i440fx-wrapped.txt", "qemu_i440fx"),
        ("systeminfo-windows.txt", "windows"),
    ],
)
def test_firmware_names_give_the_hypervisor(file: str, key: str) -> None:
    want = _expect("071")[key]
    path = _case("071") / file
    kind = want["virt"] if isinstance(want, dict) else want
    assert _value("guest.dmi", path, VIRT_KIND) == kind
    if isinstance(want, dict):
        assert _value("guest.dmi", path, MACHINE_TYPE) == want["machine_type"]


def test_xid_is_the_number_behind_the_parenthesis() -> None:
    files = ("journal.de.txt", "gpu-health.txt")
    events = [e for f in files for e in _value("guest.dmesg", _case("072") / f, XID_EVENTS)]
    for event, want in zip(events, _expect("072")["xids"], strict=True):
        assert event.code == want["code"]
        assert event.pci_address == f"{want['bdf']}.0"
        assert f"pid={want['pid']}" in event.text


def test_a_region_of_0m_is_a_failure() -> None:
    want = _expect("072")["wpr2"]
    failures = _value("guest.dmesg", _case("072") / "dmesg-wpr2.txt", BAR_FAILURES)
    assert {f.pci_address for f in failures} == {want["bdf"]}
    assert [f.bar for f in failures] == [1, 2]
    assert all(f"is {want['bar1']}" in f.text for f in failures)


def test_no_space_names_the_device_and_region() -> None:
    failures = _value("guest.dmesg", _case("039") / "lspci-bridge.txt", BAR_FAILURES)
    assert [(f.pci_address, f.bar) for f in failures] == [(_expect("039")["gpu_bdf"], 1)]
    assert _expect("039")["bar_status"] in failures[0].text


@pytest.mark.parametrize("file", ["dmesg.host.txt", "dmesg.host2.txt", "dmesg-T.host.txt"])
def test_a_region_that_someone_holds_is_no_shortage(file: str) -> None:
    reading = _read("guest.dmesg", _case("087") / file)[BAR_FAILURES.id]
    assert reading.kind is ReadingKind.NOT_RUN


@pytest.mark.parametrize(("number", "file"), [("033", "dmesg-iommu.txt"), ("036", "dmesg-iommu.host.txt")])
def test_iommu_lines(number: str, file: str) -> None:
    want = _expect(number)
    iommu = _value("guest.dmesg", _case(number) / file, GUEST_IOMMU)
    assert (iommu.vendor, iommu.enabled) == (want["iommu_vendor"], want["iommu_enabled"])
    assert iommu.interrupt_remapping == want["interrupt_remapping"]
    assert iommu.units == want.get("iommu_units", 1)
    assert iommu.default_domain is None


def test_lspci_shows_the_gpu_that_nvidia_smi_misses() -> None:
    want = _expect("008")
    path = _case("008") / "lspci-nn.guest.txt"
    gpus = _value("guest.pci_devices", path, PCI_GPUS)
    assert _value("guest.pci_devices", path, GPU_COUNT_PCI) == want["gpu_count_lspci"]
    lost = [g.pci_address for g in gpus if g.revision == want["missing_gpu"]["lspci_rev"]]
    assert lost == [want["missing_gpu"]["bdf_guest"]]


def test_names_alone_tell_q35_and_the_gpu() -> None:
    want = _expect("057")
    path = _case("057") / "lspci.guest.txt"
    gpus = _value("guest.pci_devices", path, PCI_GPUS)
    assert [g.pci_address for g in gpus] == [want["gpu_bdf"]]
    assert _value("guest.pci_devices", path, MACHINE_TYPE) == want["machine_type"]


def test_no_driver_in_use() -> None:
    gpus = _value("guest.pci_devices", _case("082") / "lspci-nnk.txt", PCI_GPUS)
    assert len(gpus) == _expect("082")["gpu_count"]
    assert {g.driver for g in gpus} == {None}


def test_an_expander_does_not_hide_the_board() -> None:
    path = _case("055") / "lspci-tvnn.guest.txt"
    assert _value("guest.pci_tree", path, MACHINE_TYPE) == _expect("055")["machine_type"]
    roots = {node.root for node in _value("guest.pci_tree", path, GUEST_PCI_TREE)}
    assert roots == set(_expect("055")["roots"])


def test_the_guest_address_of_a_libvirt_gpu() -> None:
    reading = _read("guest.pci_devices", _case("069") / "lspci.romoff.guest.txt")[PCI_GPUS.id]
    assert [g.pci_address for g in reading.value or ()] == [_expect("069")["romoff"]["guest"]]
    assert not reading.complete


def test_lspci_details_without_a_device_are_not_taken_for_one() -> None:
    for name in ("bad", "good"):
        text = (_case("008") / f"lspci-vvv-{name}.guest.txt").read_text()
        assert lspci.parse(text) == ()


def test_lscpu_nodes() -> None:
    path = _case("002") / "lscpu.txt"
    assert _value("guest.cpu", path, CPU_MODEL) == "AMD EPYC 9354 32-Core Processor"
    nodes = _value("guest.cpu", path, NUMA_NODES)
    assert [(n.id, n.cpus) for n in nodes] == [(0, "0-31,64-95"), (1, "32-63,96-127")]


def test_german_lscpu_is_no_vm() -> None:
    readings = _read("guest.cpu", _case("044") / "collect-env.txt")
    assert [n.cpus for n in readings[NUMA_NODES.id].value or ()] == [_expect("044")["cpu_affinity"]]
    assert readings[VIRT_KIND.id].value == "none"
    assert readings[VIRT_KIND.id].missing, "it says so without flags and firmware names"
    assert readings[KVM_VISIBLE.id].kind is not ReadingKind.KNOWN


def test_kernel_options_with_commas() -> None:
    cmdline = _value("guest.kernel_cmdline", _case("075") / "cmdline-note.txt", KERNEL_CMDLINE)
    want = _expect("075")["iommu_cmdline"]
    assert all(f"{key}={value}" in cmdline for key, value in want.items())


def test_a_guest_without_tools() -> None:
    folder = MEASUREMENTS / "h200x2" / "guest"
    assert _value("guest.cpu", folder / "cpuinfo.txt", KVM_VISIBLE) is True
    assert _value("guest.cpu", folder / "cpuinfo.txt", PHYS_BITS) == 46
    assert _value("guest.shm", folder / "limits.txt", SHM).size_mib == 256 * 1024
    gpus = _value("guest.pci_devices", folder / "sysfs-pci.txt", PCI_GPUS)
    assert [g.pci_address for g in gpus] == ["0000:00:06.0", "0000:00:07.0"]
    devices = sysfs_pci.parse((folder / "sysfs-pci.txt").read_text())
    assert {d.root for d in devices} == {"0000:00"}
