from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import ReadingKind
from agents.facts.host import PCI_MAPPINGS, PciMapping
from agents.facts.platform import PRODUCT_UUID, MachineType
from agents.facts.vm import (
    QEMU_COMMANDS,
    VM_ARGS,
    VM_CLIQUE,
    VM_CPU_HIDDEN,
    VM_HOSTPCI,
    VM_ID,
    VM_MACHINE,
    VM_NUMA,
    VM_QEMU_ARGS,
    VMS,
    HostPci,
    QemuCommand,
    QemuDevice,
    Vm,
)
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation import qemu_args
from webapp.diagnosis.situation.vm import with_vm
from webapp.diagnosis.situation.vm_readings import machine_type

UUID = "5c3f7a10-0000-4000-8000-00000000ab12"
GPUS = tuple(HostPci(slot, mapping="cards") for slot in range(2))
PLAIN = Vm(
    id=301,
    uuid=UUID,
    hostpci=GPUS,
    cpu="host",
    config={"cpu": "host", "hostpci0": "mapping=cards"},
    key_lines={"cpu": 3, "hostpci0": 5, "hostpci1": 6, "smbios1": 9},
)


def _case(*vms: Vm, command: QemuCommand | None = None, uuid: str | None = None) -> Facts:
    items = [Sourced(VMS.known(vms, lines=(1,)), "host.qm_config@aaa")] if vms else []
    if command:
        items.append(Sourced(QEMU_COMMANDS.known((command,), lines=(1,)), "host.qemu@bbb"))
    if uuid:
        items.append(Sourced(PRODUCT_UUID.known(uuid, lines=(1,)), "guest.dmi@ccc"))
    return Facts.of(items)


def test_no_vm_seen_leaves_the_facts_alone() -> None:
    facts = _case(uuid=UUID)
    assert with_vm(facts) is facts


def test_the_uuid_decides_among_several() -> None:
    other = replace(PLAIN, id=302, uuid="11111111-0000-4000-8000-000000000000")
    assert with_vm(_case(other, PLAIN, uuid=UUID.upper())).value(VM_ID) == 301


def test_two_vms_and_nothing_that_tells_asks() -> None:
    facts = with_vm(_case(PLAIN, replace(PLAIN, id=302)))
    best = facts.best(VM_ID)
    assert best is not None
    assert best.reading.kind is ReadingKind.NOT_RUN
    assert best.reading.detail == "ask which VM: 301, 302"
    assert facts.value(VM_MACHINE) is None


def test_the_operators_choice_wins_and_an_unknown_id_is_said() -> None:
    facts = _case(PLAIN, replace(PLAIN, id=302, machine="q35"))
    assert with_vm(facts, 302).value(VM_MACHINE) is MachineType.Q35
    assert "999 is not in what was read" in with_vm(facts, 999).all(VM_ID)[0].reading.detail


def test_a_vm_with_another_uuid_is_not_taken_for_the_guest() -> None:
    facts = with_vm(_case(PLAIN, uuid="99999999-0000-4000-8000-000000000000"))
    assert facts.value(VM_ID) is None
    assert facts.value(VM_HOSTPCI) is None


def test_only_one_vm_has_cards_of_this_maker() -> None:
    disks = Vm(id=7, hostpci=(HostPci(0, mapping="nvme"),), config={"cores": "4"})
    facts = _case(disks, PLAIN)
    mapping = PciMapping("nvme", "node", "0000:05:00.0", vendor_device="144d:a80a")
    listed = Sourced(PCI_MAPPINGS.known((mapping,), lines=(2,)), "host.map@ddd")
    both = Facts({**facts.readings, PCI_MAPPINGS.id: (listed,)})
    assert with_vm(facts).value(VM_ID) is None
    assert with_vm(both).value(VM_ID) == 301


def test_a_whole_config_gives_defaults_with_its_lines() -> None:
    facts = with_vm(_case(PLAIN))
    assert facts.value(VM_MACHINE) is MachineType.I440FX
    assert facts.kind(VM_ARGS) is ReadingKind.ABSENT
    assert facts.kind(VM_CLIQUE) is ReadingKind.ABSENT
    assert facts.value(VM_NUMA) is False
    assert facts.value(VM_CPU_HIDDEN) is False
    assert [r.line for r in facts.refs(VM_HOSTPCI)] == [5, 6]


def test_a_part_of_a_config_or_a_list_line_proves_no_absence() -> None:
    for vm in (replace(PLAIN, filtered=True), Vm(id=301, name="llm")):
        facts = with_vm(_case(vm))
        assert facts.kind(VM_ARGS) is ReadingKind.NOT_RUN
        assert facts.value(VM_MACHINE) is None
        assert facts.value(VM_CPU_HIDDEN) is None


@pytest.mark.parametrize(
    ("args", "cliques"),
    [
        ("-set device.hostpci0.x-nv-gpudirect-clique=1 -set device.hostpci1.x-nv-gpudirect-clique=1",
         {"hostpci0": 1, "hostpci1": 1}),
        ("-global vfio-pci.x-nv-gpudirect-clique=0", {"hostpci0": 0, "hostpci1": 0}),
        ("-device vfio-pci,host=0000:81:00.0,id=gpu0,x-nv-gpudirect-clique=0x2", {"gpu0": 2}),
    ],
)  # fmt: skip
def test_cliques_in_args(args: str, cliques: dict[str, int]) -> None:
    assert with_vm(_case(replace(PLAIN, args=args))).value(VM_CLIQUE) == cliques


def test_unpaired_quotes_drop_all_args() -> None:
    broken = replace(PLAIN, args="-set 'device.hostpci0.x-nv-gpudirect-clique=0")
    facts = with_vm(_case(broken))
    assert facts.kind(VM_CLIQUE) is ReadingKind.UNREADABLE
    assert facts.kind(VM_ARGS) is ReadingKind.KNOWN


@pytest.mark.parametrize(
    "vm",
    [
        replace(PLAIN, cpu="host,hidden=1"),
        replace(PLAIN, hostpci=(HostPci(0, mapping="cards", x_vga=True),)),
        replace(PLAIN, args="-cpu host,kvm=off"),
    ],
)
def test_what_hides_kvm(vm: Vm) -> None:
    assert with_vm(_case(vm)).value(VM_CPU_HIDDEN) is True


def test_the_running_line_counts_before_the_config() -> None:
    command = QemuCommand(301, True, "pc-i440fx-10.1", UUID, "host", (QemuDevice("hostpci0", None),))
    configured = replace(PLAIN, args="-set device.hostpci0.x-nv-gpudirect-clique=0", machine="q35")
    facts = with_vm(_case(configured, command=command))
    assert facts.kind(VM_CLIQUE) is ReadingKind.ABSENT
    assert facts.value(VM_QEMU_ARGS) == command
    assert facts.value(VM_MACHINE) is MachineType.Q35, "vm.machine is the configured one"


def test_a_part_of_the_running_line_proves_no_absence() -> None:
    part = QemuCommand(301, True, devices=(QemuDevice("hostpci0", None),))
    facts = with_vm(_case(command=part))
    assert facts.kind(VM_CLIQUE) is ReadingKind.NOT_RUN
    best = facts.best(VM_QEMU_ARGS)
    assert best is not None
    assert best.reading.missing == ("the whole command line",)


def test_what_showcmd_promises_is_not_what_runs() -> None:
    command = QemuCommand(301, False, devices=(QemuDevice("hostpci0", None, clique=0),))
    facts = with_vm(_case(PLAIN, command=command))
    assert facts.value(VM_QEMU_ARGS) is None
    assert facts.value(VM_CLIQUE) is None


def test_args_removed_later_do_not_linger() -> None:
    before = replace(PLAIN, args="-set device.hostpci0.x-nv-gpudirect-clique=0")
    facts = Facts.of(
        [
            Sourced(VMS.known((before,), lines=(1,)), "host.qm_config@aaa", epoch=0),
            Sourced(VMS.known((PLAIN,), lines=(1,)), "host.qm_config@bbb", epoch=1),
        ]
    )
    assert with_vm(facts).kind(VM_ARGS) is ReadingKind.ABSENT


@pytest.mark.parametrize(
    ("raw", "board"),
    [
        ("q35", MachineType.Q35),
        ("pc-q35-10.1+pve0,viommu=intel", MachineType.Q35),
        ("pc", MachineType.I440FX),
        ("type=pc-i440fx-9.0", MachineType.I440FX),
        ("virt", MachineType.OTHER),
    ],
)
def test_machine_names(raw: str, board: MachineType) -> None:
    assert machine_type(raw) is board


@settings(max_examples=50)
@given(args=st.text(max_size=120), cpu=st.text(max_size=30), uuid=st.text(max_size=10))
def test_no_config_text_raises(args: str, cpu: str, uuid: str) -> None:
    with_vm(_case(replace(PLAIN, args=args, cpu=cpu, machine=args, uuid=uuid), uuid=uuid))
    qemu_args.cliques(qemu_args.split(args) or (), ())


def test_a_vm_is_named_by_its_id_else_its_uuid_else_as_the_one_without() -> None:
    other = "11111111-0000-4000-8000-000000000000"
    nameless = [replace(PLAIN, id=None, uuid=uuid) for uuid in (other, None)]
    best = with_vm(_case(PLAIN, *nameless)).best(VM_ID)
    assert best is not None
    assert best.reading.detail == f"ask which VM: {other}, 301, the VM without an id"
    told = with_vm(_case(PLAIN, replace(PLAIN, id=302)), 303).best(VM_ID)
    assert told is not None
    assert told.reading.detail == "VM 303 is not in what was read: 301, 302"


def test_a_part_that_has_the_uuid_alone_belongs_to_the_vm_with_that_uuid() -> None:
    assert with_vm(_case(PLAIN, replace(PLAIN, id=None))).value(VM_ID) == 301
    assert with_vm(_case(PLAIN, replace(PLAIN, id=None, uuid=None))).value(VM_ID) is None
