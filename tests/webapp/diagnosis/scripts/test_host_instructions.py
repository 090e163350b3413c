"""Kernel options of the host as text for its admin; no script has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.host import BOOT_LOADER, CONFIGURED_CMDLINE, HOST_CMDLINE, BootLoader, ConfiguredCmdline
from agents.facts.platform import HOST_NUMA_NODES, NumaNode
from tests.webapp.diagnosis.building import facts_of, kvm_guest
from tests.webapp.diagnosis.scripts.machines import NODES
from tests.webapp.diagnosis.scripts.test_plans import vm
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.scripts import Do, ScriptError, host_instructions, phase_script
from webapp.diagnosis.scripts.outside_proxmox import Instruction

SCRIPTS = Path(__file__).parents[4] / "webapp/diagnosis/scripts/sh"
RUNS = "BOOT_IMAGE=/boot/vmlinuz-6.17.2-1-pve root=ZFS=rpool/ROOT/pve-1 ro boot=zfs"


def pages(*readings: Reading[Any], loader: BootLoader | None = None) -> Instruction:
    """What the admin is told about pages of 1 GiB for the founding case's VM of 432 GiB."""
    known = [BOOT_LOADER.known(loader, lines=(1,))] if loader else []
    return host_instructions(diagnose(facts_of(*kvm_guest(), vm(), NODES, *known, *readings)))["hugepages"]


def configured(*, grub: str | None = None, kernel: str | None = None, runs: str = RUNS) -> list[Reading[Any]]:
    files = ConfiguredCmdline(grub, kernel)
    return [CONFIGURED_CMDLINE.known(files, lines=(1,)), HOST_CMDLINE.known(runs, lines=(1,))]


@pytest.mark.parametrize(
    ("loader", "file", "refresh", "line"),
    [
        (BootLoader.SYSTEMD_BOOT, "/etc/kernel/cmdline", "proxmox-boot-tool refresh", "… {}"),
        (BootLoader.GRUB_UEFI, "/etc/default/grub", "update-grub", 'GRUB_CMDLINE_LINUX_DEFAULT="… {}"'),
        (BootLoader.GRUB_BIOS, "/etc/default/grub", "update-grub", 'GRUB_CMDLINE_LINUX_DEFAULT="… {}"'),
    ],
)
def test_the_file_the_line_and_the_command_are_of_the_loader(
    loader: BootLoader, file: str, refresh: str, line: str
) -> None:
    told = pages(loader=loader)
    text = " ".join(told.steps)
    assert told.text == line.format("hugepagesz=1G hugepages=432")
    for words in (f"`cp {file} /root/", f"`{refresh}`", "reboot the host", "free_hugepages` says 432 or more"):
        assert words in text
    assert "`qm set 128 --numa 1 --hugepages 1024`" in text
    for words in ("`qm set 128 --delete hugepages`", f"out of `{file}`", f"`{refresh}`", "reboot the host"):
        assert words in told.rollback
    other = "/etc/default/grub" if "kernel" in file else "/etc/kernel/cmdline"
    assert other not in text + told.rollback


@pytest.mark.parametrize("loader", [None, BootLoader.UNKNOWN])
def test_of_an_unknown_loader_both_ways_are_told(loader: BootLoader | None) -> None:
    told = pages(loader=loader)
    text = " ".join(told.steps)
    for words in (
        "efibootmgr -v",
        "/etc/kernel/cmdline",
        "proxmox-boot-tool refresh",
        "/etc/default/grub",
        "update-grub",
    ):
        assert words in text
    assert "boot loader not read" in told.title


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ("root=ZFS=rpool/ROOT/pve-1 boot=zfs", "nothing else waits in that file"),
        ("root=ZFS=rpool/ROOT/pve-1 boot=zfs iommu=pt quiet", "`iommu=pt quiet` begins to hold"),
        ("root=ZFS=rpool/ROOT/pve-1 iommu=pt", "`iommu=pt` begins to hold and `boot=zfs` is gone"),
        ("boot=zfs iommu=`reboot`", "differ: look what else changes"),
    ],
)
def test_what_else_waits_in_the_file_is_told(options: str, waits: str) -> None:
    told = pages(*configured(kernel=options), loader=BootLoader.SYSTEMD_BOOT)
    assert any(waits in step for step in told.steps), told.steps
    shown = "…" if "`" in options else options
    assert told.text == f"{shown} hugepagesz=1G hugepages=432"


def test_the_file_of_the_other_loader_tells_nothing() -> None:
    told = pages(*configured(kernel="boot=zfs iommu=pt"), loader=BootLoader.GRUB_UEFI)
    assert any("compare the file with `cat /proc/cmdline`" in step for step in told.steps)


def test_a_host_without_the_memory_is_said_first() -> None:
    few = HOST_NUMA_NODES.known((NumaNode(0, "0-31", 440 * 1024),), lines=(1,))
    facts = facts_of(*kvm_guest(), vm(), few)
    assert "leave it less than 16" in host_instructions(diagnose(facts))["hugepages"].steps[0]
    assert "768 GiB: 432 for the VM leave it 336" in pages().steps[0]


def test_memory_that_is_no_whole_number_of_pages_has_no_figure() -> None:
    told = host_instructions(diagnose(facts_of(*kvm_guest(), vm(memory="442000"), NODES)))["hugepages"]
    assert told.text == "… hugepagesz=1G hugepages=N"
    assert "whole GiB" in told.steps[0]


def test_where_pages_are_set_there_is_nothing_to_tell() -> None:
    facts = facts_of(*kvm_guest(), vm(hugepages="1024"), NODES)
    assert "hugepages" not in host_instructions(diagnose(facts))


def test_no_script_touches_what_the_host_boots_with() -> None:
    """Boot files, kernel options, modules and memory of the host; P0 only keeps copies of them."""
    for loader in BootLoader:
        facts = facts_of(*kvm_guest(), vm(), NODES, BOOT_LOADER.known(loader, lines=(1,)))
        for phase in ("P0", "P2", "P3", "P4"):
            for do in Do:
                try:
                    text = phase_script(facts, phase, do).text
                except ScriptError:
                    continue
                assert not re.search(r"hugepages|update-grub|boot-tool refresh|modprobe|update-initramfs|sysctl", text)
    assert not list(SCRIPTS.glob("*boot*"))
