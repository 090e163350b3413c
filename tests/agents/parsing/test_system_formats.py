"""Properties of the readers of system tools: round trips, what must not be believed, and their speed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import ReadingKind
from agents.facts.platform import MachineType
from agents.parsing import cpuinfo, dmesg, dmi, lscpu, lspci, numa, sysfs_pci
from agents.probe import Output
from agents.probes import all_probes

pytestmark = pytest.mark.thorough

_MINE = ["virt_kind", "container", "dmi", "product_uuid", "pci_devices", "pci_tree", "numa", "dmesg"]
_MINE += ["kernel_cmdline", "cpu", "memory", "shm", "clique_capability", "gpu_bars"]
_MINE += ["python_with_torch"]

_ADDRESS = st.builds(
    lambda domain, bus, device, function: f"{domain:04x}:{bus:02x}:{device:02x}.{function}",
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFF),
    st.integers(0, 0x1F),
    st.integers(0, 7),
)


@settings(max_examples=50)
@given(address=_ADDRESS, prefix=st.sampled_from(["", "> ", "    "]), upper=st.booleans())
def test_an_address_survives_every_spelling(address: str, prefix: str, upper: bool) -> None:
    shown = address.upper() if upper else address
    line = f"{prefix}{shown} 3D controller [0302]: NVIDIA Corporation X [10de:2bb5] (rev a1)"
    (device,) = lspci.parse(line)
    assert device.address == address
    assert device.is_gpu
    assert lspci.full_address(f"0000{address}") == address
    if address.startswith("0000:"):
        assert lspci.full_address(address[5:]) == address


@settings(max_examples=50)
@given(address=_ADDRESS, bridges=st.lists(_ADDRESS, max_size=4), node=st.integers(-1, 15))
def test_our_sysfs_line_gives_back_what_it_holds(address: str, bridges: list[str], node: int) -> None:
    above = [bridge for bridge in bridges if bridge != address]
    path = "/".join(["/sys/devices/pci0000:c0", *above, address])
    line = f"{address} vendor=0x10de device=0x2bb5 class=0x030200 driver= numa={node} path={path}"
    (device,) = sysfs_pci.parse(line)
    assert (device.address, device.numa_node) == (address, node)
    assert (device.root, device.bridges) == ("0000:c0", tuple(above))
    assert device.listed.is_gpu
    assert device.driver is None


@settings(max_examples=50)
@given(cpus=st.sets(st.integers(0, 600), min_size=1, max_size=80))
def test_ranges_name_every_cpu_once(cpus: set[int]) -> None:
    text = numa.ranges(" ".join(str(cpu) for cpu in sorted(cpus)))
    back: list[int] = []
    for span in text.split(","):
        first, _, last = span.partition("-")
        back += range(int(first), int(last or first) + 1)
    assert back == sorted(cpus)


@pytest.mark.parametrize(
    ("line", "bits"),
    [
        ("Address sizes:       46 bits physical, 57 bits virtual", 46),
        ("Adressgrößen:        39 Bits physisch, 48 Bits virtuell", 39),
        ("Tailles d’adresse :  48 bits physiques, 48 bits virtuels", 48),
        ("地址大小：            52 bits physical, 57 bits virtual", 52),
        ("CPU op-mode(s):      32-bit, 64-bit", None),
    ],
)
def test_address_sizes_in_any_language(line: str, bits: int | None) -> None:
    assert lscpu.parse(line).phys_bits == bits


@pytest.mark.parametrize(
    ("line", "vendor"),
    [
        ("Hypervisor vendor:        KVM", "KVM"),
        ("Hypervisor-Anbieter:      KVM", "KVM"),
        ("Constructeur d'hyperviseur : KVM", "KVM"),
        ("超管理器厂商：             KVM", "KVM"),
        ("Virtualization:           AMD-V", None),
        ("Virtualisierung:          VT-x", None),
    ],
)
def test_a_hypervisor_is_its_vendor_and_not_a_processor_feature(line: str, vendor: str | None) -> None:
    assert lscpu.parse(line).hypervisor_vendor == vendor


def test_cpuinfo_reads_the_first_processor() -> None:
    block = "processor\t: 0\nmodel name\t: AMD EPYC 9335 32-Core Processor\nflags\t\t: fpu hypervisor\n"
    block += "address sizes\t: 40 bits physical, 48 bits virtual\n\n"
    found = cpuinfo.parse(block * 3)
    assert (found.model, found.phys_bits) == ("AMD EPYC 9335 32-Core Processor", 40)
    assert (found.hypervisor_flag, found.bits_line) == (True, 4)


@pytest.mark.parametrize(
    ("names", "kind", "board"),
    [
        ("sys_vendor: QEMU\nproduct_name: Standard PC (Q35 + ICH9, 2009)", "qemu", MachineType.Q35),
        ("sys_vendor: QEMU\nproduct_name: QEMU Virtual Machine", "qemu", MachineType.OTHER),
        ("sys_vendor: VMware, Inc.\nproduct_name: VMware20,1", "vmware", None),
        ("sys_vendor: Amazon EC2\nproduct_name: p5.48xlarge", "amazon", None),
        ("sys_vendor: Amazon EC2\nproduct_name: m7i.metal-24xl", None, None),
        ("sys_vendor: Google\nproduct_name: Google Compute Engine", "google", None),
        ("sys_vendor: Microsoft Corporation\nproduct_name: Virtual Machine", "microsoft", None),
        ("sys_vendor: Microsoft Corporation\nproduct_name: Surface Laptop", None, None),
        ("sys_vendor: innotek GmbH\nproduct_name: VirtualBox", "oracle", None),
        ("sys_vendor: Dell Inc.\nproduct_name: PowerEdge XE9680", None, None),
    ],
)
def test_firmware_names(names: str, kind: str | None, board: MachineType | None) -> None:
    found = dmi.parse(names)
    assert found
    assert (dmi.virt_kind(found), dmi.machine_type(found)) == (kind, board)


_BAR = "pci 0000:01:00.0: BAR 2 [mem size 0x2000000000 64bit pref]: can't assign; no space"


@pytest.mark.parametrize(
    "stamp",
    [
        "",
        "[    0.402120] ",
        "<6>[    0.402120] ",
        "[Thu May 26 17:04:45 2022] ",
        "Nov 12 08:01:44 llm kernel: ",
        "2026-11-12T08:01:44+0100 llm kernel: ",
        "> [    0.402120] ",
        "   Okt 06 17:59:27 host1 kernel: ",
    ],
)
def test_every_time_stamp_is_taken_off(stamp: str) -> None:
    (failure,), lines = dmesg.bar_failures(f"first line\n{stamp}{_BAR}")
    assert (failure.pci_address, failure.bar, failure.text) == ("0000:01:00.0", 2, _BAR)
    assert lines == (2,)


def test_an_address_that_came_later_is_no_failure() -> None:
    placed = "pci 0000:01:00.0: BAR 2 [mem 0x8000000000-0x9fffffffff 64bit pref]: assigned"
    assert dmesg.bar_failures(f"{_BAR}\n{placed}") == ((), ())
    assert len(dmesg.bar_failures(f"{placed}\n{_BAR}")[0]) == 1


@pytest.mark.parametrize(
    "line",
    [
        "AMD-Vi: AMD IOMMUv2 functionality not available on this system - This is not a bug.",
        "AMD-Vi: Unknown option - 'on'",
        "iommu: Default domain type: Translated",
        "Command line: BOOT_IMAGE=/vmlinuz intel_iommu=on",
    ],
)
def test_lines_that_prove_no_iommu(line: str) -> None:
    assert dmesg.iommu(line) is None


_HOSTILE = {
    "one long line": "00:10.0 " + "a" * 2_000_000,
    "many devices": "00:10.0 3D controller [0302]: NVIDIA Corporation [10de:2bb5]\n\tx: y\n" * 2_500,
    "many colons": ("a:" * 2000 + "\n") * 50,
    "many stamps": "[    1.000000] pci 0000:01:00.0: BAR 1: no space for [mem size 0x1]\n" * 2_500,
    "many blanks": (" " * 1000 + "\n") * 100,
    "many numbers": "node 0 cpus: " + "1 " * 500_000,
    "many equals": "vendor=0x10de class=0x030200 " * 20_000,
}


@pytest.mark.parametrize("shape", _HOSTILE)
def test_large_hostile_text_takes_linear_time(shape: str) -> None:
    output = Output(_HOSTILE[shape], exit_code=None, alternative=-1)
    for name in _MINE:
        began = time.process_time()
        readings = all_probes()[f"guest.{name}"].parse(output)
        assert readings
        assert all(isinstance(reading.kind, ReadingKind) for reading in readings)
        assert time.process_time() - began < 10, name
