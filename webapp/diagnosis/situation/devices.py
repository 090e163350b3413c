"""Which GPU of the guest is which device of the host, and how that is known.

A slot (`hostpciN`) names the host's device; the emulated address tells the slot. On q35 the root ports of
slots 4 to 15 (00:10.0 to 00:11.3) stand before those of slots 0 to 3 (00:1c.0 to 00:1c.3), and slots
without pcie=1 hang last, behind 00:1e.0; on i440FX the order is that of the numbers. Firmware numbers
buses in that order, and nvidia-smi lists by address.

Source: Proxmox qemu-server, PCI.pm (address maps, print_pcie_root_port) and pve-q35-4.0.cfg, 2026-11.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.facts.gpu import PCI_GPUS
from agents.facts.platform import VIRT_KIND
from agents.facts.vm import QEMU_COMMANDS, VM_HOSTPCI, VM_ID, VM_QEMU_ARGS, HostPci, QemuCommand
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation.platform import CONTAINER_KINDS

SAME_MACHINE = "by PCI address: host and guest are one machine, and the driver runs on the host"
_ORDER = "the guest’s addresses follow Proxmox’s map of slots (qemu-server, PCI.pm)"
RUNNING = f"by slot: the running QEMU command line names the host’s device, and {_ORDER}"
CONFIGURED = f"by slot: the VM’s configuration names the host’s device, and {_ORDER}"
EXPECTED = f"by slot: qm showcmd names the device that the next start would take, and {_ORDER}"
# The first four root ports are part of the board, the others are added before them.
BOARD_PORTS = 4


@dataclass(frozen=True, slots=True)
class Matching:
    """pairs: (host address, index of the guest's GPU). how: "" where nothing matched."""

    pairs: tuple[tuple[str, int], ...] = ()
    how: str = ""


def match_devices(facts: Facts, host: Sequence[str], guest: Sequence[str]) -> Matching:
    """host, guest: the GPUs' PCI addresses, the guest's in the driver's order, "" where not read."""
    rows = {bus(address): address for address in host}
    if _is_the_host(facts) and all(bus(address) in rows for address in guest):
        return Matching(tuple((rows[bus(a)], i) for i, a in enumerate(guest)), SAME_MACHINE)
    where, how = _devices(facts)
    pairs = tuple(
        (rows[bus(where[slot.slot])], i)
        for i, slot in slots_of(facts, guest).items()
        if slot.slot in where and bus(where[slot.slot]) in rows
    )
    return Matching(pairs, how if pairs else "")


def slots_of(facts: Facts, guest: Sequence[str]) -> dict[int, HostPci]:
    """The slot of each GPU of the guest, by its index; empty unless as many GPUs as slots are seen.

    The bus counts before the driver's list, which leaves out GPUs that do not answer.
    """
    passed = facts.value(VM_HOSTPCI) or ()
    slots = sorted(passed, key=_bus_order)
    on_bus = sorted(gpu.pci_address for gpu in facts.value(PCI_GPUS) or ())
    if len(on_bus) == len(slots) and set(guest) <= set(on_bus):
        at = dict(zip(on_bus, slots, strict=True))
        return {i: at[address] for i, address in enumerate(guest)}
    if len(guest) != len(slots):
        return {}
    order = sorted(range(len(guest)), key=lambda i: (guest[i], i))
    return dict(zip(order, slots, strict=True))


def host_device(facts: Facts, address: str) -> tuple[HostPci, str] | None:
    """The slot, and the host's address of the device, behind an address on the guest's bus."""
    on_bus = [gpu.pci_address for gpu in facts.value(PCI_GPUS) or ()]
    slot = slots_of(facts, on_bus).get(on_bus.index(address)) if address in on_bus else None
    where, _ = _devices(facts)
    return (slot, where[slot.slot]) if slot and slot.slot in where else None


def _bus_order(slot: HostPci) -> tuple[bool, bool, int]:
    """Behind a root port first; of those the added ports before the board's own four."""
    early = slot.slot >= BOARD_PORTS if slot.pcie else slot.slot < BOARD_PORTS
    return (not slot.pcie, not early, slot.slot)


def _is_the_host(facts: Facts) -> bool:
    kind = (facts.value(VIRT_KIND) or "").lower()
    return kind == "none" or kind in CONTAINER_KINDS


def _devices(facts: Facts) -> tuple[Mapping[int, str], str]:
    """The host's device of each slot: as it runs, else as configured, else as showcmd would start it."""
    running = facts.value(VM_QEMU_ARGS)
    if running is not None and (addresses := _in_command(running)):
        return addresses, RUNNING
    slots = facts.value(VM_HOSTPCI) or ()
    if configured := {slot.slot: slot.addresses[0] for slot in slots if slot.addresses}:
        return configured, CONFIGURED
    number = facts.value(VM_ID)
    commands = [c for c in facts.value(QEMU_COMMANDS) or () if number in {None, c.vm_id}]
    return (_in_command(commands[0]) if len(commands) == 1 else {}), EXPECTED


def _in_command(command: QemuCommand) -> dict[int, str]:
    """The first function of each `id=hostpciN` or `id=hostpciN.0`."""
    addresses: dict[int, str] = {}
    for device in command.devices:
        named = re.match(r"hostpci(\d+)", device.id or "")
        if named and device.host_address:
            addresses.setdefault(int(named[1]), device.host_address)
    return addresses


def bus(address: str) -> str:
    """ "01:00" of "0000:01:00.0"."""
    return re.sub(r"^0{4,8}:", "", address.lower()).partition(".")[0]
