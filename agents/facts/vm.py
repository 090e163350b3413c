"""The VM, as the hypervisor configures and runs it.

`host.vms` holds every VM an output names; the `vm.*` facts are about the one under diagnosis and are
derived from it by matching (webapp.diagnosis.situation.vm), never by a probe.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.facts.fact import Fact
from agents.facts.platform import MachineType


@dataclass(frozen=True, slots=True)
class HostPci:
    """One `hostpciN:` line. addresses XOR mapping. pcie and x_vga None: not written (default 0)."""

    slot: int
    addresses: tuple[str, ...] = ()
    mapping: str | None = None
    pcie: bool | None = None
    x_vga: bool | None = None
    rombar: bool | None = None
    romfile: str | None = None
    multifunction: bool | None = None


@dataclass(frozen=True, slots=True)
class Vm:
    """One VM's configuration.

    machine: the raw `machine:` value, None when the line is absent (Proxmox's default is i440FX). config: every `key:
    value` of the current section. pending: values not yet applied. key_lines: the line each key stands on. filtered:
    the text shows only a part of the config, so an absent key proves nothing.
    """

    id: int | None = None
    name: str | None = None
    uuid: str | None = None
    machine: str | None = None
    hostpci: tuple[HostPci, ...] = ()
    args: str | None = None
    cpu: str | None = None
    bios: str | None = None
    numa: bool | None = None
    hugepages: str | None = None
    memory_mib: int | None = None
    running: bool | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    pending: Mapping[str, str] = field(default_factory=dict)
    key_lines: Mapping[str, int] = field(default_factory=dict)
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class QemuDevice:
    """One `-device vfio-pci…` of a QEMU command line. clique None: no x-nv-gpudirect-clique on it."""

    id: str | None
    host_address: str | None
    bus: str | None = None
    clique: int | None = None
    iommufd: bool = False


@dataclass(frozen=True, slots=True)
class QemuCommand:
    """A QEMU command line: of a running process (/proc/PID/cmdline), or as `qm showcmd` prints it.

    running False: from showcmd, which shows the next start and not the present process. global_clique: from `-global
    vfio-pci.…`.
    """

    vm_id: int | None
    running: bool
    machine: str | None = None
    uuid: str | None = None
    cpu: str | None = None
    devices: tuple[QemuDevice, ...] = ()
    global_clique: int | None = None
    text: str = ""


VMS: Fact[tuple[Vm, ...]] = Fact("host.vms", "VM configurations", tuple[Vm, ...])
QEMU_COMMANDS: Fact[tuple[QemuCommand, ...]] = Fact("host.qemu_commands", "QEMU command lines", tuple[QemuCommand, ...])
VM_ID: Fact[int] = Fact("vm.id", "VM id", int)
VM_UUID: Fact[str] = Fact("vm.uuid", "VM UUID", str)
VM_MACHINE: Fact[MachineType] = Fact("vm.machine", "Machine type", MachineType)
VM_HOSTPCI: Fact[tuple[HostPci, ...]] = Fact("vm.hostpci", "Passed-through devices", tuple[HostPci, ...])
VM_ARGS: Fact[str] = Fact("vm.args", "Extra QEMU arguments", str)
VM_QEMU_ARGS: Fact[QemuCommand] = Fact("vm.qemu_args", "Running QEMU command line", QemuCommand)
VM_CLIQUE: Fact[Mapping[str, int]] = Fact("vm.clique", "GPUDirect cliques by device", dict[str, int])
VM_CPU: Fact[str] = Fact("vm.cpu", "CPU type", str)
VM_CPU_HIDDEN: Fact[bool] = Fact("vm.cpu_hidden", "KVM hidden from the guest", bool)
VM_NUMA: Fact[bool] = Fact("vm.numa", "Virtual NUMA", bool)
VM_HUGEPAGES: Fact[str] = Fact("vm.hugepages", "Hugepages", str)
VM_BIOS: Fact[str] = Fact("vm.bios", "Firmware", str)
VM_PENDING: Fact[Mapping[str, str]] = Fact("vm.pending", "Changes not applied yet", dict[str, str])
