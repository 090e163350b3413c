"""The host's tree beside the guest's, matched device by device as far as evidence goes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.facts.gpu import GPUS, PCI_GPUS
from agents.facts.host import GPU_PATHS, IOMMU_GROUPS, PCI_MAPPINGS
from agents.facts.p2p import TOPOLOGY
from agents.facts.platform import MACHINE_TYPE, VIRT_KIND
from agents.facts.vm import VM_HOSTPCI, VM_QEMU_ARGS
from webapp.diagnosis.facts import Facts


@dataclass(frozen=True, slots=True)
class HostGpu:
    """One GPU as it is wired: its root complex, the bridge it hangs on, and what the host says of it."""

    address: str
    root_complex: str
    port: str
    group: str
    link: str
    switch: str = ""


@dataclass(frozen=True, slots=True)
class GuestGpu:
    """One GPU as the guest sees it. bridge: the emulated bus it shares with others, "" for the root."""

    name: str
    address: str
    slot: str = ""
    bridge: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """matches: (index in host, index in guest) of the same device. emulated: the guest's tree is drawn
    by a hypervisor and says nothing about the wiring. notes: what limits the picture."""

    host: tuple[HostGpu, ...]
    guest: tuple[GuestGpu, ...]
    matches: tuple[tuple[int, int], ...]
    emulated: bool
    board: str
    notes: tuple[str, ...]


def draw(facts: Facts) -> Topology:
    host = _host(facts)
    guest = _guest(facts)
    matches, note = _matches(facts, host, guest)
    virt = facts.value(VIRT_KIND)
    notes = [note] if note else []
    if not host:
        notes.append("The host's side is unknown: only the host can say how the GPUs are wired.")
    if not guest:
        notes.append("The guest's GPUs are unknown.")
    board = facts.value(MACHINE_TYPE)
    return Topology(
        host, guest, matches, virt not in (None, "none"), board.value if board else "", tuple(notes)
    )


def _host(facts: Facts) -> tuple[HostGpu, ...]:
    paths = facts.value(GPU_PATHS) or ()
    groups = {
        device: group.group for group in facts.value(IOMMU_GROUPS) or () for device in group.devices
    }
    return tuple(
        HostGpu(
            path.pci_address,
            path.root_complex,
            path.root_port or "",
            _group(groups.get(path.pci_address, path.iommu_group)),
            path.link or "",
            path.switch or "",
        )
        for path in sorted(paths, key=lambda p: p.pci_address)
    )


def _group(number: int | None) -> str:
    return "" if number is None else f"group {number}"


def _guest(facts: Facts) -> tuple[GuestGpu, ...]:
    bridges = _shared_bridges(facts)
    gpus = facts.value(GPUS)
    if gpus:
        found = [(f"GPU {gpu.index}", gpu.pci_address or "") for gpu in gpus]
    else:
        on_bus = facts.value(PCI_GPUS) or ()
        found = [(f"GPU at {short(gpu.pci_address)}", gpu.pci_address) for gpu in on_bus]
    slots = facts.value(VM_HOSTPCI) or ()
    # Proxmox gives hostpci0, hostpci1 … ascending guest addresses, so equal counts match in order.
    same = len(slots) == len(found)
    return tuple(
        GuestGpu(name, address, f"hostpci{slots[i].slot}" if same else "", bridges.get(i, ""))
        for i, (name, address) in enumerate(found)
    )


def _shared_bridges(facts: Facts) -> dict[int, str]:
    """GPUs that `topo -m` puts behind one emulated bridge (PIX among them)."""
    matrix = facts.value(TOPOLOGY)
    if matrix is None:
        return {}
    shared = {
        end for pair, link in matrix.gpu_links().items() if link in {"PIX", "PXB"} for end in pair
    }
    return {i: "one bridge" for i, name in enumerate(matrix.gpus) if name in shared}


def _matches(
    facts: Facts, host: tuple[HostGpu, ...], guest: tuple[GuestGpu, ...]
) -> tuple[tuple[tuple[int, int], ...], str]:
    slots = facts.value(VM_HOSTPCI) or ()
    running = facts.value(VM_QEMU_ARGS)
    where: dict[str, str] = {}
    for slot in slots:
        if slot.addresses:
            where[f"hostpci{slot.slot}"] = slot.addresses[0]
    if running is not None and running.running:
        for device in running.devices:
            if device.id and device.host_address:
                where[device.id.partition(".")[0]] = device.host_address
    rows = {_bus(gpu.address): i for i, gpu in enumerate(host)}
    matches = tuple(
        (rows[_bus(where[gpu.slot])], i)
        for i, gpu in enumerate(guest)
        if gpu.slot in where and _bus(where[gpu.slot]) in rows
    )
    if host and guest and not matches and any(slot.mapping for slot in slots):
        pool = facts.value(PCI_MAPPINGS)
        count = f" of {len(pool)} devices" if pool else ""
        return (), (
            f"The VM takes its GPUs from a mapping pool{count}: which slot got which GPU is decided at "
            "each start. The running QEMU command line would tell."
        )
    return matches, ""


def _bus(address: str) -> str:
    """ "01:00" of "0000:01:00.0"."""
    return re.sub(r"^0{4,8}:", "", address.lower()).partition(".")[0]


def short(address: str) -> str:
    """ "01:00.0" of "0000:01:00.0"."""
    return re.sub(r"^0{4,8}:", "", address)
