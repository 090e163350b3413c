"""Proxmox configurations: the properties that cases cannot show one by one."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.parsing import qm_config

pytestmark = pytest.mark.thorough

KEYS = ("machine", "memory", "cores", "cpu", "bios", "ostype", "scsihw", "hostpci0", "numa", "args")
WORD = st.text(string.ascii_letters + string.digits + ",=.-", min_size=1, max_size=20)
CONFIG = st.dictionaries(st.sampled_from(KEYS), WORD, min_size=1)


def _print(config: dict[str, str]) -> str:
    return "".join(f"{key}: {value}\n" for key, value in config.items())


@settings(max_examples=50)
@given(CONFIG, CONFIG, CONFIG)
def test_only_the_current_section_is_in_effect(
    current: dict[str, str], pending: dict[str, str], snapshot: dict[str, str]
) -> None:
    text = "### /etc/pve/qemu-server/140.conf\n" + _print(current)
    text += "\n[PENDING]\n" + _print(pending) + "\n[before]\n" + _print(snapshot)
    (vm,) = qm_config.parse(text)
    assert vm.id == 140
    assert vm.config == current
    assert vm.pending == pending


@settings(max_examples=50)
@given(CONFIG, st.sampled_from(["", "  ", "> ", "12:", "   > "]), WORD)
def test_how_a_line_is_quoted_does_not_matter(config: dict[str, str], prefix: str, comment: str) -> None:
    plain = qm_config.parse(_print(config))
    lines = [f"{prefix}{line}   # {comment}" for line in _print(config).splitlines()]
    assert [vm.config for vm in qm_config.parse("\n".join(lines))] == [vm.config for vm in plain]


@pytest.mark.parametrize(
    ("value", "addresses", "mapping"),
    [
        ("01:00", ("0000:01:00",), None),
        ("0000:01:00.0;0000:01:00.1,pcie=1", ("0000:01:00.0", "0000:01:00.1"), None),
        ("host=10000:AB:00.0", ("10000:ab:00.0",), None),
        ("pcie=1,mapping=gpu", (), "gpu"),
    ],
)
def test_hostpci_addresses(value: str, addresses: tuple[str, ...], mapping: str | None) -> None:
    device = qm_config.hostpci(3, value)
    assert device is not None
    assert (device.slot, device.addresses, device.mapping) == (3, addresses, mapping)


def test_a_flag_that_is_not_written_is_not_off() -> None:
    device = qm_config.hostpci(0, "01:00.0,x-vga=off")
    assert device is not None
    assert device.pcie is None
    assert device.x_vga is False


def test_an_excerpt_proves_no_absence_but_a_whole_one_does() -> None:
    whole = "cores: 4\nmemory: 4096\nname: a\nostype: l26\nboot: c\nscsihw: virtio-scsi-pci\n"
    assert not qm_config.parse(whole)[0].filtered
    assert qm_config.parse(whole.replace("memory: 4096\n", ""))[0].filtered
    assert qm_config.parse(whole + "...\n")[0].filtered
    assert qm_config.parse("# qm config 5 | head\n" + whole)[0].filtered


def test_two_configurations_in_one_text_stay_two() -> None:
    found = qm_config.parse("name: a\nmemory: 1024\nname: b\nmemory: 2048\n")
    assert [(vm.name, vm.memory_mib) for vm in found] == [("a", 1024), ("b", 2048)]


def test_passwords_and_keys_are_no_facts() -> None:
    (vm,) = qm_config.parse("name: a\ncipassword: hunter2\nsshkeys: ssh-ed25519%20AAAA\n")
    assert vm.config == {"name": "a"}


def test_a_description_cannot_pose_as_configuration() -> None:
    text = "description: see%0Ahostpci0%3A 01%3A00\n#hostpci1: 0000:02:00.0\nname: a\n"
    assert qm_config.parse(text)[0].hostpci == ()
