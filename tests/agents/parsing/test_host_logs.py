"""Logs of VM starts and the boot loader: what may be concluded, and what may not."""

from __future__ import annotations

import pytest

from agents.facts import ReadingKind
from agents.facts.host import BootLoader
from agents.parsing import boot_loader, host_dmesg, libvirt
from agents.probe import Output
from agents.probes.host import vfio

ERROR = "kvm: vfio_container_dma_map(0x1, 0x2, 0x3, 0x4) = -14 (Bad address)"


def test_errors_belong_to_the_vm_whose_log_they_stand_in() -> None:
    text = f"### start log of VM 1\nTASK OK\n### start log of VM 2\n{ERROR}\nTASK OK\n"
    start = host_dmesg.vfio_start(text)
    assert [(error.vm_id, error.code) for error in start.errors] == [(2, -14)]
    assert start.vm_ids == (1, 2)


@pytest.mark.parametrize("text", ["", "### start log of VM 1\nTASK ERROR: start failed\n"])
def test_a_start_that_was_not_read_or_failed_is_not_clean(text: str) -> None:
    assert vfio.parse(Output(text))[0].kind is ReadingKind.NOT_RUN


def test_a_repeated_message_counts_once() -> None:
    assert len(host_dmesg.vfio_start(f"{ERROR}\n" * 5000).errors) == 1


@pytest.mark.parametrize(
    ("text", "loader"),
    [
        ("firmware: uefi\ngrub: /etc/default/grub\n", BootLoader.UNKNOWN),
        ("firmware: bios\ngrub: /etc/default/grub\n", BootLoader.GRUB_BIOS),
        ("firmware: uefi\nloader info: systemd-boot 257\n", BootLoader.SYSTEMD_BOOT),
        ("System currently booted with uefi\n", BootLoader.UNKNOWN),
    ],
)
def test_uefi_alone_names_no_loader(text: str, loader: BootLoader) -> None:
    found = boot_loader.parse(text)
    assert found is not None
    assert found.loader is loader


def test_what_is_commented_out_of_a_domain_is_not_in_it() -> None:
    device = "<hostdev type='pci'><source><address bus='0x01' slot='0x00'/></source></hostdev>"
    assert libvirt.parse(f"<!-- {device} -->") == ()
    (vm,) = libvirt.parse(f"<!-- a --> {device}")
    assert vm.hostpci[0].addresses == ("0000:01:00.0",)
