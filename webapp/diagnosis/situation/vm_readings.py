"""The `vm.*` facts of one VM, derived from its configuration and its QEMU command line.

Defaults are Proxmox's (qemu-server 9.2.6): no `machine` line means i440FX, no `bios` line SeaBIOS, no
`numa` line none, no `cpu` line kvm64. A default is only assumed when the whole configuration was read.
"""

from typing import Any

from agents.facts import Fact, Reading
from agents.facts.platform import MACHINE_TYPE, MachineType
from agents.facts.vm import (
    VM_ARGS,
    VM_BIOS,
    VM_CLIQUE,
    VM_CPU,
    VM_CPU_HIDDEN,
    VM_HOSTPCI,
    VM_HUGEPAGES,
    VM_ID,
    VM_MACHINE,
    VM_NUMA,
    VM_PENDING,
    VM_QEMU_ARGS,
    VM_UUID,
    QemuCommand,
    Vm,
)
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation import qemu_args

Readings = list[Reading[Any]]


def machine_type(raw: str) -> MachineType:
    """ "pc-q35-9.2+pve1,viommu=intel" -> q35; "pc" and "pc-i440fx-10.1" -> i440fx."""
    name = raw.split(",")[0].removeprefix("type=").lower()
    if "q35" in name:
        return MachineType.Q35
    is_pc = name == "pc" or name.startswith(("pc+", "pc-")) or "i440fx" in name
    return MachineType.I440FX if is_pc else MachineType.OTHER


def whole(vm: Vm) -> bool:
    """Whether a key that is not there is known not to be there. A line of `qm list` has no config."""
    return not vm.filtered and bool(vm.config or vm.hostpci)


def of_config(vm: Vm) -> Readings:
    """What one VM's configuration says; keys a partial paste does not show get no reading."""
    readings: Readings = []
    if vm.id is not None:
        readings.append(VM_ID.known(vm.id, lines=_lines(vm)))
    if vm.uuid:
        readings.append(VM_UUID.known(vm.uuid.lower(), lines=_lines(vm, "smbios1")))
    readings += _machine(vm)
    if vm.hostpci:
        slots = tuple(f"hostpci{device.slot}" for device in vm.hostpci)
        readings.append(VM_HOSTPCI.known(vm.hostpci, lines=_lines(vm, *slots)))
    elif whole(vm):
        readings.append(VM_HOSTPCI.absent("the configuration has no hostpci", lines=_lines(vm)))
    readings += _args(vm) + _cpu(vm)
    readings += _or_default(vm, VM_NUMA, vm.numa, "numa", default=False)
    readings += _or_default(vm, VM_BIOS, vm.bios, "bios", default="seabios")
    if vm.hugepages:
        readings.append(VM_HUGEPAGES.known(vm.hugepages, lines=_lines(vm, "hugepages")))
    elif whole(vm):
        readings.append(VM_HUGEPAGES.absent("the configuration has no hugepages", lines=_lines(vm)))
    if vm.pending:
        readings.append(VM_PENDING.known(vm.pending, lines=_lines(vm, *vm.pending)))
    return readings


def of_command(command: QemuCommand, lines: tuple[int, ...], *, cut: bool) -> Readings:
    """What the running QEMU command line says; `qm showcmd` is a promise and says nothing here.

    cut: a part of the line is missing, so what is not in it may still be set.
    """
    if not command.running:
        return []
    missing = ("the whole command line",) if cut else ()
    readings: Readings = [VM_QEMU_ARGS.known(command, lines=lines, missing=missing)]
    if command.vm_id is not None:
        readings.append(VM_ID.known(command.vm_id, lines=lines))
    if command.uuid:
        readings.append(VM_UUID.known(command.uuid.lower(), lines=lines))
    if command.machine:
        running = machine_type(command.machine)
        readings.append(VM_MACHINE.known(running, lines=lines, missing=("the configured machine",)))
    if cliques := running_cliques(command):
        readings.append(VM_CLIQUE.known(cliques, lines=lines, missing=missing))
    elif not cut:
        detail = "the running QEMU command line has no clique"
        readings.append(VM_CLIQUE.absent(detail, lines=lines))
    if command.cpu:
        readings.append(VM_CPU.known(command.cpu.split(",")[0], lines=lines))
        readings.append(VM_CPU_HIDDEN.known(qemu_args.cpu_hides_kvm(command.cpu), lines=lines))
    return readings


def running_cliques(command: QemuCommand) -> dict[str, int]:
    """Clique by device id of a command line; `-global` counts for devices without their own."""
    named = [(d.id or d.host_address or "vfio-pci", d.clique) for d in command.devices]
    return {
        name: clique for name, own in named if (clique := own if own is not None else command.global_clique) is not None
    }


def _machine(vm: Vm) -> Readings:
    if vm.machine:
        return [VM_MACHINE.known(machine_type(vm.machine), lines=_lines(vm, "machine"))]
    return [VM_MACHINE.known(MachineType.I440FX, lines=_lines(vm))] if whole(vm) else []


def _args(vm: Vm) -> Readings:
    """args and the cliques in them. Unpaired quotes: Proxmox drops the whole string silently."""
    if vm.args is None:
        lines = _lines(vm)
        absent = [VM_ARGS.absent("the configuration has no args", lines=lines)]
        no_clique = VM_CLIQUE.absent("the configuration has no args", lines=lines)
        return [*absent, no_clique] if whole(vm) else []
    lines = _lines(vm, "args")
    words = qemu_args.split(vm.args)
    cliques = qemu_args.cliques(words or (), [f"hostpci{device.slot}" for device in vm.hostpci])
    clique: Reading[Any] = VM_CLIQUE.absent("args sets no clique", lines=lines)
    if words is None:
        detail = "the quotes in args do not pair; Proxmox then drops all of args"
        clique = VM_CLIQUE.unreadable(detail, lines=lines)
    elif cliques:
        clique = VM_CLIQUE.known(cliques, lines=lines)
    return [VM_ARGS.known(vm.args, lines=lines), clique]


def _cpu(vm: Vm) -> Readings:
    """`hidden=1`, `x-vga=1` and a `-cpu …,kvm=off` in args each hide KVM from the guest."""
    readings: Readings = []
    if vm.cpu:
        name = vm.cpu.split(",")[0].removeprefix("cputype=")
        readings.append(VM_CPU.known(name, lines=_lines(vm, "cpu")))
    elif whole(vm):
        readings.append(VM_CPU.absent("no cpu line; Proxmox’s default is kvm64", lines=_lines(vm)))
    culprits = _hiding_keys(vm)
    if culprits:
        readings.append(VM_CPU_HIDDEN.known(True, lines=_lines(vm, *culprits)))
    elif whole(vm):
        readings.append(VM_CPU_HIDDEN.known(False, lines=_lines(vm, "cpu")))
    return readings


def _hiding_keys(vm: Vm) -> tuple[str, ...]:
    keys = [f"hostpci{device.slot}" for device in vm.hostpci if device.x_vga]
    if vm.cpu and "hidden=1" in vm.cpu.replace(" ", "").split(","):
        keys.append("cpu")
    if vm.args and qemu_args.hides_kvm(qemu_args.split(vm.args) or ()):
        keys.append("args")
    return tuple(keys)


def _or_default(vm: Vm, fact: Fact[Any], value: Any, key: str, *, default: Any) -> Readings:
    if value is not None:
        return [fact.known(value, lines=_lines(vm, key))]
    return [fact.known(default, lines=_lines(vm))] if whole(vm) else []


def _lines(vm: Vm, *keys: str) -> tuple[int, ...]:
    """The lines of the keys; the configuration's first line when they are not there."""
    lines = tuple(vm.key_lines[key] for key in keys if key in vm.key_lines)
    return lines or ((min(vm.key_lines.values()),) if vm.key_lines else ())


def board(facts: Facts) -> MachineType | None:
    """Of two readings the one of the newer epoch; within one epoch the host's."""
    if facts.peek(VM_MACHINE) is None or facts.newer(MACHINE_TYPE, VM_MACHINE):
        return facts.value(MACHINE_TYPE) or facts.value(VM_MACHINE)
    return facts.value(VM_MACHINE)


def board_refs(facts: Facts) -> tuple[EvidenceRef, ...]:
    """Of the readings that say so: one that says another board is no evidence for this one."""
    agreed = board(facts)
    return facts.refs(*(f for f in (VM_MACHINE, MACHINE_TYPE) if facts.peek(f) in {agreed, None}))
