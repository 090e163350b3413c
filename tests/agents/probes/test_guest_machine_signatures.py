"""Which probe of the guest's machine answers a command that a person typed, and what output opens it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents.framing import clean
from agents.probes import all_probes

_MINE = ["virt_kind", "container", "dmi", "product_uuid", "pci_devices", "pci_tree", "numa", "dmesg"]
_MINE += ["kernel_cmdline", "cpu", "memory", "shm", "clique_capability", "gpu_bars"]
_MINE += ["python_with_torch"]
_CASES = Path(__file__).parent / "guest"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("systemd-detect-virt", "virt_kind"),
        ("systemd-detect-virt -v", "virt_kind"),
        ("systemd-detect-virt -c", "container"),
        ("hostnamectl", "virt_kind"),
        ("sudo dmidecode -t system", "dmi"),
        ("cat /sys/class/dmi/id/product_name", "dmi"),
        ("sudo dmidecode -s system-uuid", "product_uuid"),
        ("sudo cat /sys/class/dmi/id/product_uuid", "product_uuid"),
        ("lspci", "pci_devices"),
        ("lspci -nn | grep -i nvidia", "pci_devices"),
        ("lspci -nnk -d 10de:", "pci_devices"),
        ("lspci -tv", "pci_tree"),
        ("lspci -tvnn", "pci_tree"),
        ("lspci -tvv", "pci_tree"),
        ("sudo lspci -s 01:00.0 -vv", "clique_capability"),
        ("lspci -vvv | grep -A1 c8", "clique_capability"),
        ("sudo lspci -xxx -s 01:00.0", "clique_capability"),
        ("sudo xxd -g1 /sys/bus/pci/devices/0000:01:00.0/config", "clique_capability"),
        ("cat /sys/bus/pci/devices/0000:01:00.0/resource", "gpu_bars"),
        ("numactl -H", "numa"),
        ("numactl --hardware", "numa"),
        ("cat /proc/cmdline", "kernel_cmdline"),
        ("sudo dmesg -T | grep -iE 'nvrm|xid'", "dmesg"),
        ("journalctl -k -b | grep -i iommu", "dmesg"),
        ("lscpu", "cpu"),
        ("grep -m1 'address sizes' /proc/cpuinfo", "cpu"),
        ("free -h", "memory"),
        ("grep MemTotal /proc/meminfo", "memory"),
        ("df -h /dev/shm", "shm"),
        ("nvidia-smi topo -m", None),
        ("cat /etc/pve/qemu-server/128.conf", None),
        ("git config --list", None),
    ],
)
def test_one_probe_knows_a_typed_command(command: str, name: str | None) -> None:
    typed = {n: all_probes()[f"guest.{n}"].signature.typed for n in _MINE}
    found = [n for n, pattern in typed.items() if pattern and re.search(pattern, command)]
    assert found == ([name] if name else [])


@pytest.mark.parametrize(
    ("case", "line"),
    [
        ("pci_devices/i440fx_two_gpus", 0),
        ("pci_devices/sysfs_q35_gpus", 0),
        ("pci_devices/pasted_numbers_only", 0),
        ("pci_tree/pasted_i440fx_tree", 0),
        ("pci_tree/pasted_expander_only", 0),
        ("numa/pasted_numactl", 0),
        ("numa/two_nodes_gpus_without_node", 0),
        ("kernel_cmdline/guest", 0),
        ("cpu/kvm_epyc", 0),
        ("cpu/pasted_german", 0),
        ("memory/meminfo", 0),
        ("memory/pasted_free_h", 0),
        ("dmi/pasted_dmidecode", 0),
        ("dmi/pasted_kernel_line", 0),
        ("dmi/pasted_hyperv", 0),
        ("dmesg/no_room_for_two_gpus", 0),
        ("dmesg/pasted_journal", 0),
        ("clique_capability/one_clique_for_two", 0),
        ("clique_capability/pasted_grep", 0),
        ("gpu_bars/blackwell_128_gib", 0),
        ("shm/pasted_df_h", 1),
        ("python_with_torch/in_conda", 1),
        ("container/docker", 0),
        ("virt_kind/kvm_hidden", 1),
        ("virt_kind/pasted_hostnamectl", 4),
    ],
)
def test_output_opens_by_its_first_lines_and_goes_on(case: str, line: int) -> None:
    probe = all_probes()[f"guest.{case.split('/')[0]}"]
    lines = clean((_CASES / case / "stdout.txt").read_bytes()).splitlines()
    assert any(re.search(pattern, lines[line]) for pattern in probe.signature.starts)
    belongs = probe.signature.belongs
    if belongs is not None:
        opens = (belongs, *probe.signature.starts)
        strays = [text for text in lines[line + 1 :] if not any(re.search(p, text) for p in opens)]
        assert strays == []
