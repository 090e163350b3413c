"""The host's tree beside the guest's, matched device by device as far as evidence goes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from agents.facts.gpu import GPUS, PCI_GPUS
from agents.facts.host import ACS, GPU_PATHS, IOMMU_GROUPS, PCI_MAPPINGS, PCI_TREE, GpuPath
from agents.facts.p2p import TOPOLOGY
from agents.facts.platform import MACHINE_TYPE, VIRT_KIND
from agents.facts.vm import VM_HOSTPCI, VM_QEMU_ARGS
from webapp.diagnosis.facts import Facts


@dataclass(frozen=True, slots=True)
class HostGpu:
    """One GPU as it is wired: its root complex, the bridge it hangs on, and what the host says of it.

    numa_node None: not read, or the host has no nodes. redirects: whether ACS on the switch's ports, or
    on the root port where there is no switch, sends peer traffic up to the root; None: not read.
    """

    address: str
    root_complex: str
    port: str
    group: str
    link: str
    switch: str = ""
    numa_node: int | None = None
    redirects: bool | None = None


@dataclass(frozen=True, slots=True)
class GuestGpu:
    """One GPU as the guest sees it. bridge: the bridge it shares with others, "" for the root."""

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
    redirects = _redirects(facts)
    return tuple(
        HostGpu(
            path.pci_address,
            path.root_complex,
            path.root_port or "",
            _group(groups.get(path.pci_address, path.iommu_group)),
            path.link or "",
            path.switch or "",
            path.numa_node,
            redirects(path),
        )
        for path in sorted(paths, key=lambda p: p.pci_address)
    )


def _redirects(facts: Facts) -> Callable[[GpuPath], bool | None]:
    """What the ports that a GPU's peer traffic could turn in do with it.

    PCI Express base specification, Access Control Services: below a switch its own ports decide, and
    without one there is only the root port.
    """
    ports = {port.pci_address: port.redirect for port in facts.value(ACS) or ()}
    above = {node.address: node.path for node in facts.value(PCI_TREE) or ()}

    def of(path: GpuPath) -> bool | None:
        bridges = above.get(path.pci_address, ())[1:] if path.switch else (path.root_port or "",)
        found = [ports[bridge] for bridge in bridges or (path.switch or "",) if bridge in ports]
        return any(found) if found else None

    return of


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
    """Which bridge each GPU shares with others, by what `topo -m` calls PIX or PXB."""
    matrix = facts.value(TOPOLOGY)
    if matrix is None:
        return {}
    near = {pair for pair, link in matrix.gpu_links().items() if link in {"PIX", "PXB"}}
    found: dict[int, str] = {}
    count = 0
    for i, name in enumerate(matrix.gpus):
        if i in found or not any(name in pair for pair in near):
            continue
        count += 1
        found |= {matrix.gpus.index(one): f"bridge {count}" for one in _joined(name, near)}
    return found


def _joined(name: str, near: set[tuple[str, str]]) -> set[str]:
    """Every GPU that can be reached from one over near pairs."""
    reached, ahead = {name}, [name]
    while ahead:
        here = ahead.pop()
        found = {b if a == here else a for a, b in near if here in (a, b)} - reached
        reached |= found
        ahead += found
    return reached


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
