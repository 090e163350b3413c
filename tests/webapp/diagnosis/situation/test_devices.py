"""The same device on both sides: by slot, by the running line, by address; and what stays unmatched."""

from __future__ import annotations

from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.gpu import GPUS, PCI_GPUS, Gpu, PciGpu
from agents.facts.host import GPU_PATHS, PCI_MAPPINGS, GpuPath, PciMapping
from agents.facts.platform import MACHINE_TYPE, VIRT_KIND, MachineType
from agents.facts.vm import QEMU_COMMANDS, VMS, HostPci, QemuCommand, QemuDevice, Vm
from agents.raw_reading import read_raw
from tests.corpus import CORPUS, needs_corpus
from tests.webapp.diagnosis.building import facts_of, sourced
from tests.webapp.diagnosis.sample_facts import facts_at
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation import devices as by
from webapp.diagnosis.situation.devices import slots_of
from webapp.diagnosis.situation.topology import Topology, draw
from webapp.diagnosis.situation.vm import with_vm

HOST = [f"0000:{0x10 * i + 1:02x}:00.0" for i in range(8)]
Q35_GUEST = [f"0000:{i + 1:02x}:00.0" for i in range(8)]
I440FX_GUEST = [
    *("0000:00:10.0", "0000:00:11.0", "0000:00:1b.0", "0000:00:1c.0"),
    *("0000:02:0d.0", "0000:02:0e.0", "0000:02:0f.0", "0000:02:10.0"),
]


def machine(guest: list[str], *slots: HostPci, more: tuple[Reading[Any], ...] = (), virt: str = "kvm") -> Facts:
    return with_vm(
        facts_of(
            VIRT_KIND.known(virt),
            GPUS.known(tuple(Gpu(i, "Card", pci_address=a) for i, a in enumerate(guest))),
            GPU_PATHS.known(tuple(GpuPath(a, a[:7]) for a in HOST)),
            *([VMS.known((Vm(7, hostpci=slots, config={"cores": "8"}),))] if slots else []),
            *more,
        )
    )


def configured(count: int = 8, *, pcie: bool | None) -> list[HostPci]:
    return [HostPci(i, (HOST[i],), pcie=pcie) for i in range(count)]


def joined(topology: Topology) -> dict[str, str]:
    """Guest address -> host address."""
    return {topology.guest[g].address: topology.host[h].address for h, g in topology.matches}


def test_on_q35_the_added_root_ports_come_before_the_boards_own() -> None:
    """pve-q35-4.0.cfg has ports 1 to 4 at 00:1c; PCI.pm adds the ports of hostpci4 and up at 00:10."""
    found = draw(machine(Q35_GUEST, *configured(pcie=True)))
    order = [4, 5, 6, 7, 0, 1, 2, 3]
    assert [gpu.slot for gpu in found.guest] == [f"hostpci{i}" for i in order]
    assert list(joined(found).values()) == [HOST[i] for i in order]
    assert found.matched_by == by.CONFIGURED
    assert not found.expected


def test_four_gpus_on_q35_and_eight_on_i440fx_keep_the_order_of_their_numbers() -> None:
    four = draw(machine(Q35_GUEST[:4], *configured(4, pcie=True)))
    eight = draw(machine(I440FX_GUEST, *configured(pcie=None)))
    assert list(joined(four).values()) == HOST[:4]
    assert list(joined(eight).values()) == HOST


def test_slots_without_pcie_hang_behind_those_with_it() -> None:
    slots = [HostPci(0, (HOST[0],)), HostPci(1, (HOST[1],), pcie=True)]
    found = draw(machine(["0000:02:00.0", "0000:06:10.0"], *slots))
    assert joined(found) == {"0000:02:00.0": HOST[1], "0000:06:10.0": HOST[0]}


def test_a_gpu_the_driver_lost_does_not_shift_the_others() -> None:
    on_bus = PCI_GPUS.known(tuple(PciGpu(a) for a in Q35_GUEST))
    seven = [a for a in Q35_GUEST if a != "0000:04:00.0"]
    found = draw(machine(seven, *configured(pcie=True), more=(on_bus,)))
    assert joined(found)["0000:05:00.0"] == HOST[0]
    assert "hostpci7" not in {gpu.slot for gpu in found.guest}
    unknown = draw(machine(seven, *configured(pcie=True)))
    assert not unknown.matches
    assert {gpu.slot for gpu in unknown.guest} == {""}


def command(devices: list[str], *, running: bool) -> Reading[Any]:
    passed = tuple(QemuDevice(f"hostpci{i}.0", address) for i, address in enumerate(devices))
    return QEMU_COMMANDS.known((QemuCommand(7, running, "q35", devices=passed),))


@pytest.mark.parametrize(("running", "how"), [(True, by.RUNNING), (False, by.EXPECTED)])
def test_a_pool_is_matched_by_the_command_line(running: bool, how: str) -> None:
    """showcmd reserves nothing on Proxmox VE 9: what it names is expected, not seen."""
    slots = [HostPci(i, mapping="pool") for i in range(8)]
    taken = list(reversed(HOST))
    found = draw(machine(I440FX_GUEST, *slots, more=(command(taken, running=running),)))
    assert list(joined(found).values()) == taken
    assert found.matched_by == how
    assert found.expected is not running


def test_the_running_line_counts_before_the_configuration() -> None:
    taken = list(reversed(HOST))
    more = (command(taken, running=True),)
    found = draw(machine(I440FX_GUEST, *configured(pcie=None), more=more))
    assert list(joined(found).values()) == taken


@pytest.mark.parametrize("virt", ["none", "lxc"])
def test_without_a_hypervisor_the_addresses_are_the_same(virt: str) -> None:
    found = draw(machine(HOST, virt=virt))
    assert joined(found) == {a: a for a in HOST}
    assert found.matched_by == by.SAME_MACHINE


def test_a_container_in_a_vm_is_not_the_host() -> None:
    assert not draw(machine(Q35_GUEST[1:3], virt="docker")).matches


def test_a_pool_alone_matches_nothing_and_says_what_would() -> None:
    slots = [HostPci(i, mapping="pool") for i in range(8)]
    pool = PCI_MAPPINGS.known(tuple(PciMapping("pool", None, a) for a in HOST))
    found = draw(machine(I440FX_GUEST, *slots, more=(pool,)))
    assert not found.matches
    assert found.matched_by == ""
    assert "mapping pool of 8 devices" in found.notes[0]


def test_the_board_on_the_map_is_the_newest_one() -> None:
    old = sourced(MACHINE_TYPE.known(MachineType.I440FX), VIRT_KIND.known("kvm"))
    new = sourced(VMS.known((Vm(7, machine="q35", config={"cores": "8"}),)), epoch=1)
    assert draw(with_vm(Facts.of([*old, *new]))).board == "q35"
    assert draw(with_vm(facts_at("after"))).board == "q35"
    assert draw(with_vm(facts_at("guest"))).board == "i440fx"


@needs_corpus
def test_the_card_that_fell_off_is_the_one_that_the_hosts_log_names() -> None:
    """Eight cards on q35: the guest lost 04:00.0, and the host's journal has 88:00.0 in D3cold."""
    folder = CORPUS / "008-proxmox-q35-rtx3080x8-gpu-lost"
    readings = [
        reading
        for name in ("qm-config-hostpci.txt", "lspci-nn.guest.txt")
        for item in read_raw((folder / name).read_bytes(), role=None, hint=name).items
        for reading in item.readings
    ]
    facts = with_vm(facts_of(*readings))
    addresses = [gpu.pci_address for gpu in facts.value(PCI_GPUS) or ()]
    slot = slots_of(facts, addresses)[addresses.index("0000:04:00.0")]
    assert slot.slot == 7
    assert slot.addresses[0].startswith("0000:88:00")
    lost = diagnose(facts).verdicts["gpu_lost"]
    assert any("hostpci7, the host’s 0000:88:00" in claim.text for claim in lost.for_)
