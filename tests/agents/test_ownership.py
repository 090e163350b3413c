"""Tools that print the same about every machine: whose output a text is decides who may read it."""

from __future__ import annotations

import pytest

from agents.facts import View
from agents.raw_reading import read_raw

HOST_LOG = """\
root@pve:~# dmesg
[    0.000000] Linux version 6.8.12-4-pve (build@proxmox)
[    0.412000] iommu: Default domain type: Translated
[    0.862330] AMD-Vi: Interrupt remapping enabled
"""
GUEST_LOG = """\
op@llm:~$ sudo dmesg
[    0.000000] DMI: QEMU Standard PC (i440FX + PIIX, 1996), BIOS rel-1.16.3
[    0.862330] AMD-Vi: Interrupt remapping enabled
[   99.000001] NVRM: Xid (PCI:0000:00:10): 79, pid=1, GPU has fallen off the bus.
"""
DEVICES = """\
$ lspci -nn
01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [10de:2204] (rev a1)
"""


def _readers(text: str, role: View | None, hint: str = "") -> set[str]:
    return {item.reader for item in read_raw(text.encode(), role=role, hint=hint).items}


@pytest.mark.parametrize("role", [None, View.HOST])
@pytest.mark.parametrize("log", [HOST_LOG, HOST_LOG.partition("\n")[2]], ids=["typed", "bare"])
def test_a_hosts_log_says_nothing_of_the_guest(role: View | None, log: str) -> None:
    assert _readers(log, role) == {"host.kernel_log"}


@pytest.mark.parametrize("role", [None, View.GUEST])
def test_a_guests_log_stays_the_guests(role: View | None) -> None:
    items = read_raw(GUEST_LOG.encode(), role=role).items
    assert {item.reader for item in items} == {"guest.dmesg", "guest.dmi"}
    assert "guest.xid_events" in {r.fact_id for r in items[0].readings if r.kind == "known"}


@pytest.mark.parametrize(
    "text", [DEVICES, "$ systemd-detect-virt\nnone\n", "$ df -h /dev/shm\ntmpfs 9G 0 9G 0% /dev/shm\n"]
)
def test_what_was_said_to_be_the_hosts_is_never_the_guests(text: str) -> None:
    assert not any(reader.startswith("guest.") for reader in _readers(text, View.HOST))
    assert not any(reader.startswith("guest.") for reader in _readers(text, None, "pve-host.txt"))
    assert any(reader.startswith("guest.") for reader in _readers(text, View.GUEST))


def test_what_only_a_guest_prints_is_read_wherever_it_was_pasted() -> None:
    matrix = "$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tNS\t\n GPU1\tNS\tX\t\n"
    assert _readers(matrix, View.HOST) == {"guest.topo_p2p_read"}


@pytest.mark.parametrize(
    ("line", "reader"),
    [
        ('GRUB_CMDLINE_LINUX_DEFAULT="quiet amd_iommu=on"', "host.configured_cmdline"),
        ("BOOT_IMAGE=/boot/vmlinuz-6.8.12-4-pve root=/dev/sda1 iommu=pt", "host.kernel_cmdline"),
    ],
)
def test_a_command_line_right_below_the_log_is_not_a_part_of_it(line: str, reader: str) -> None:
    assert {"host.kernel_log", reader} <= _readers(HOST_LOG + line + "\n", None)


PORT = """\
00:1c.0 PCI bridge: {vendor} (prog-if 00 [Normal decode])
	Capabilities: [148 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
"""


def test_an_emulated_port_says_nothing_of_the_hosts_bridges() -> None:
    emulated = PORT.format(vendor="Red Hat, Inc. QEMU PCIe Root port")
    assert "host.acs" not in _readers(emulated, None)
    assert "host.acs" not in _readers(PORT.format(vendor="Intel Corporation"), View.GUEST)


def test_whose_bridges_these_are_is_asked() -> None:
    (item,) = read_raw(PORT.format(vendor="Intel Corporation").encode(), role=None).items
    assert (item.reader, item.unsure) == ("host.acs", True)


NODES = "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 257000 MB\n"
TWO_MACHINES = f"""\
root@kpro6:~# qm config 128
machine: q35
memory: 262144
root@kpro6:~# numactl -H
{NODES}user@llm:~$ numactl -H
{NODES}user@llm:~$ nvidia-smi -L
GPU 0: NVIDIA L40S (UUID: GPU-5f2b9c1e-8d3a-4e7f-9b0c-1a2b3c4d5e6f)
"""


def test_prompts_tell_two_machines_in_one_paste_apart() -> None:
    items = read_raw(TWO_MACHINES.encode(), role=None).items
    assert [i.reader for i in items] == ["host.vms", "host.numa", "guest.numa", "guest.gpu_list"]
    assert not any(item.unsure for item in items)


def test_headings_tell_two_machines_in_one_paste_apart() -> None:
    text = f"The Proxmox host:\n```\n{NODES}```\nInside the VM:\n```\n{NODES}```\n"
    items = read_raw(text.encode(), role=None).items
    assert [item.reader for item in items] == ["host.numa", "guest.numa"]


def test_a_vms_number_is_in_the_typed_command() -> None:
    vms = read_raw(TWO_MACHINES.encode(), role=None).items[0].readings[0].value
    assert [vm.id for vm in vms or ()] == [128]


def test_a_text_with_words_of_the_host_alone_is_the_hosts_throughout() -> None:
    report = (
        "# pveversion --verbose\nproxmox-ve: 9.0.0 (running kernel: 6.14.11-4-pve)\n\n"
        "# dmidecode -t bios -q\nBIOS Information\n\tVendor: American Megatrends Inc.\n\n"
        "# cat /etc/pve/qemu-server/128.conf\nmemory: 1024\nscsihw: virtio-scsi-single\n"
    )
    assert _readers(report, None) == {"host.pve_version", "host.vms"}
