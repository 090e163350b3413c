"""What other people's hosts printed, against what a correct reader must get from it."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from agents.facts import ReadingKind
from agents.facts.host import BootLoader, VfioBackend
from agents.facts.platform import MachineType
from agents.facts.vm import Vm
from agents.parsing import (
    boot_loader,
    iommu_groups,
    libvirt,
    lspci_tree,
    pci_mappings,
    pveversion,
    qemu_command,
    qm_config,
)
from agents.probe import Output
from agents.probes import all_probes
from tests.corpus import CORPUS, needs_corpus

pytestmark = needs_corpus

CONFIGS = ["008", "012", "014", "016", "018", "020", "021", "038", "063"]


def _expect(case: str) -> dict[str, Any]:
    (folder,) = CORPUS.glob(f"{case}-*")
    found: dict[str, Any] = tomllib.loads((folder / "case.toml").read_text())["expect"]
    return found


def _text(case: str, pattern: str) -> str:
    (path,) = CORPUS.glob(f"{case}-*/{pattern}")
    return path.read_text()


def _read(probe: str, text: str) -> dict[str, Any]:
    readings = all_probes()[f"host.{probe}"].parse(Output(text, "", None, -1))
    return {reading.fact_id: reading for reading in readings}


def _vm(case: str) -> Vm:
    (vm,) = qm_config.parse(_text(case, "qm-config*.txt"))
    return vm


def _shape(vm: Vm) -> list[dict[str, Any]]:
    """The devices as case.toml writes them; a flag that is not written is Proxmox's default, off."""
    return [
        {"i": d.slot, "bdf": ";".join(d.addresses), "mapping": d.mapping, "pcie": bool(d.pcie)}
        | {"x_vga": bool(d.x_vga), "romfile": d.romfile}
        for d in vm.hostpci
    ]


@pytest.mark.parametrize("case", CONFIGS)
def test_hostpci(case: str) -> None:
    wanted = _expect(case)["hostpci"]
    default = {"bdf": "", "mapping": None, "pcie": False, "x_vga": False, "romfile": None}
    assert _shape(_vm(case)) == [default | item for item in wanted]


@pytest.mark.parametrize("case", ["014", "016", "018", "021"])
def test_machine_version(case: str) -> None:
    assert _vm(case).machine == _expect(case)["machine_version"]


@pytest.mark.parametrize("case", ["008", "012", "020", "021", "038", "063"])
def test_an_excerpt_is_known_to_be_one(case: str) -> None:
    assert _vm(case).filtered


def test_values_beside_comments_and_in_comments() -> None:
    assert _vm("014").cpu == "host,hidden=1"
    assert _vm("038").cpu == "host,flags=+pcid"
    assert _vm("016").args == _expect("016")["args"]
    assert (_vm("018").numa, _vm("018").hugepages) == (True, _expect("018")["hugepages"])
    assert _vm("018").config["parent"] == _expect("018")["snapshot_parent"]


def test_vm_lists() -> None:
    assert len(qm_config.parse(_text("063", "qm-list.txt"))) == _expect("063")["vm_count"]
    listed = qm_config.parse(_text("008", "qm-list.txt"))
    assert [(vm.id, vm.running) for vm in listed] == [(101, True), (301, False)]


def test_numbered_and_cut_showcmd() -> None:
    (found,) = qemu_command.parse(_text("008", "qm-showcmd.txt"))
    assert not found.command.running
    first = [d.host_address for d in found.command.devices if (d.id or "").endswith(".0")]
    assert first == [f"{item['bdf']}.0" for item in _expect("008")["hostpci"]]
    assert all((d.bus or "").startswith("ich9-pcie-port-") for d in found.command.devices)


def test_a_table_about_arguments_is_no_command_line() -> None:
    assert qemu_command.parse(_text("037", "qemu-args.txt")) == ()
    assert _read("vfio", _text("037", "qemu-stderr.txt"))["host.vfio_errors"].value is None


def test_iommufd() -> None:
    (found,) = qemu_command.parse(_text("073", "qemu-args.txt"))
    assert [device.iommufd for device in found.command.devices] == [True]
    seen = {device.host_address for device in found.command.devices}
    for name in ("arm", "kata", "snp"):
        readings = _read("vfio", _text("073", f"qemu-stderr.{name}.txt"))
        assert readings["host.vfio_backend"].value is VfioBackend.IOMMUFD
        errors = readings["host.vfio_errors"].value
        seen |= {error.pci_address for error in errors if error.pci_address}
    assert seen == set(_expect("073")["bdfs"])


def test_a_region_someone_holds_is_no_failed_mapping() -> None:
    for name in ("dmesg.host.txt", "dmesg-T.host.txt", "dmesg.host2.txt"):
        reading = _read("vfio", _text("087", name))["host.vfio_errors"]
        assert reading.kind is ReadingKind.NOT_RUN
        assert any(bdf in reading.detail for bdf in _expect("087")["bdfs"])


def test_mappings() -> None:
    found = pci_mappings.parse(_text("022", "pci.cfg"))
    assert found is not None
    wanted = [
        (m["name"], m["id"], m["path"], m["node"], m["iommugroup"], m["subsystem_id"])
        for m in _expect("022")["mappings"]
    ]
    assert [(m.mapping, m.vendor_device, m.path, m.node, m.iommu_group, m.subsystem) for m in found[0]] == wanted


@pytest.mark.parametrize(
    ("case", "pattern", "cut"),
    [
        ("022", "find*", False),
        ("029", "iommu-groups.txt", True),
        ("031", "find*", False),
        ("082", "iommu-groups*", False),
    ],
)
def test_groups(case: str, pattern: str, cut: bool) -> None:
    found = iommu_groups.parse(_text(case, pattern))
    assert found is not None
    wanted = {int(g): tuple(map(_full, d)) for g, d in _expect(case)["groups"].items()}
    assert {group.group: group.devices for group in found.groups} == wanted
    assert found.cut is cut


def test_groups_in_a_table() -> None:
    wanted = {item["bdf"]: item["group"] for item in _expect("079")["devices"]}
    found = iommu_groups.parse(_text("079", "pvesh-hardware-pci.txt"))
    assert found is not None
    assert {g.devices[0]: g.group for g in found.groups} == wanted
    part = iommu_groups.parse(_text("079", "pvesh-hardware-pci.no-rules.txt"))
    assert part is not None
    assert {g.devices[0]: g.group for g in part.groups}.items() <= wanted.items()


def test_nested_switches() -> None:
    tree = lspci_tree.parse(_text("010", "lspci-tv.txt"))
    assert tree is not None
    gpus = [n for n in tree.nodes if n.address in _expect("010")["gpu_bdfs"]]
    assert {lspci_tree.switch(n) for n in gpus} == {_full(_expect("010")["common_upstream"])}
    assert lspci_tree.gpus(tree.nodes) == ()


def test_several_roots_of_a_guest() -> None:
    text = _text("055", "lspci-tvnn*")
    tree = lspci_tree.parse(text)
    assert tree is not None
    assert list(dict.fromkeys(node.root for node in tree.nodes)) == _expect("055")["roots"]
    assert lspci_tree.machine_type(text) is MachineType.I440FX


def test_an_excerpt_with_brackets_in_names() -> None:
    tree = lspci_tree.parse(_text("058", "lspci-tvnn.txt"))
    assert tree is not None
    assert list(dict.fromkeys(node.root for node in tree.nodes)) == _expect("058")["roots_seen"]
    assert tree.cut
    reading = _read("pci_tree", _text("058", "lspci-tvnn.txt"))["host.gpu_paths"]
    assert reading.kind is ReadingKind.NOT_RUN


def test_a_hand_made_tree_claims_nothing() -> None:
    readings = _read("pci_tree", _text("005", "lspci-tv.txt"))
    assert {reading.kind for reading in readings.values()} == {ReadingKind.UNREADABLE}


def test_acs() -> None:
    (port,) = _read("acs", _text("010", "lspci-vvv-bridge.txt"))["host.acs"].value
    assert port.pci_address == _full(_expect("010")["acs_at"])
    assert port.redirect is _expect("010")["acs_redirect_enabled"]


@pytest.mark.parametrize(("case", "vendor"), [("033", "amd"), ("036", "intel"), ("079", "intel")])
def test_iommu(case: str, vendor: str) -> None:
    expect = _expect(case)
    reading = _read("iommu", _text(case, "dmesg*"))["host.iommu"]
    assert (reading.value.vendor, reading.value.enabled) == (vendor, expect["iommu_enabled"])
    assert reading.value.interrupt_remapping is expect.get("interrupt_remapping")
    assert reading.value.units == expect.get("iommu_units", reading.value.units)
    assert ("amd_iommu=on" in reading.detail) is expect.get("unknown_option_on", False)


@pytest.mark.parametrize("case", ["014", "033"])
def test_the_configured_command_line_is_no_running_one(case: str) -> None:
    reading = _read("kernel_cmdline", _text(case, "etc-default-grub.txt"))["host.kernel_cmdline"]
    assert "iommu=" in reading.value
    assert not reading.complete


@pytest.mark.parametrize(
    ("name", "loader", "uefi", "managed", "esps", "error"),
    [
        ("legacy-mount-error", BootLoader.GRUB_BIOS, False, True, 1, True),
        ("no-uuids", BootLoader.UNKNOWN, None, False, 0, False),
        ("two-esp", BootLoader.GRUB_BIOS, False, True, 2, False),
        ("uefi-grub", BootLoader.GRUB_UEFI, True, True, 1, False),
    ],
)
def test_boot_loaders(name: str, loader: BootLoader, uefi: bool | None, managed: bool, esps: int, error: bool) -> None:
    found = boot_loader.parse(_text("062", f"status.{name}.txt"))
    assert found is not None
    assert (found.loader, found.uefi, found.managed, found.esps) == (loader, uefi, managed, esps)
    assert bool(found.errors) is error


def test_pveversion() -> None:
    new = pveversion.parse(_text("063", "pveversion-v.txt"))
    old = pveversion.parse(_text("063", "pveversion-v.old.txt"))
    wanted = _expect("063")
    assert new is not None
    assert old is not None
    assert (new.qemu, new.qemu_server) == (wanted["new"]["qemu"], wanted["new"]["qemu_server"])
    assert (new.major, new.kernel) == (wanted["new"]["pve_major_by_packages"], None)
    assert (old.manager, old.kernel, old.qemu) == tuple(wanted["old"][key] for key in ("pve", "kernel", "qemu"))


def test_libvirt_takes_the_hosts_address() -> None:
    for name in ("romoff", "q35"):
        (vm,) = libvirt.parse(_text("069", f"domain-hostdev.{name}.xml"))
        wanted = _expect("069")[name]
        sources = [item["source"] for item in (wanted if isinstance(wanted, list) else [wanted])]
        assert [device.addresses for device in vm.hostpci] == [(source,) for source in sources]
        assert vm.filtered
    (romoff,) = libvirt.parse(_text("069", "domain-hostdev.romoff.xml"))
    assert romoff.hostpci[0].rombar is False


def test_libvirt_cliques() -> None:
    (vm,) = libvirt.parse(_text("069", "qemu-commandline.clique.xml"))
    assert vm.args is not None
    for device, clique in _expect("069")["cliques"].items():
        assert f"device.{device}.x-nv-gpudirect-clique={clique}" in vm.args


def _full(address: str) -> str:
    return address if address.count(":") == 2 else f"0000:{address}"
