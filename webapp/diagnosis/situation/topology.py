"""The host's tree beside the guest's, matched device by device as far as evidence goes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agents.facts.gpu import GPUS, PCI_GPUS
from agents.facts.host import ACS, GPU_PATHS, IOMMU_GROUPS, PCI_MAPPINGS, PCI_TREE, GpuPath
from agents.facts.p2p import TOPOLOGY
from agents.facts.platform import VIRT_KIND
from agents.facts.vm import VM_HOSTPCI
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation.devices import EXPECTED, match_devices, slots_of
from webapp.diagnosis.situation.vm_readings import board


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
    """matches: (index in host, index in guest) of the same device. matched_by: how that is known, and
    expected: whether only the next start would make it so. emulated: the guest's tree is drawn by a
    hypervisor and says nothing about the wiring; bare: the guest says that there is none. Neither is known
    before it was asked. notes: what limits the picture."""

    host: tuple[HostGpu, ...]
    guest: tuple[GuestGpu, ...]
    matches: tuple[tuple[int, int], ...]
    emulated: bool
    board: str
    notes: tuple[str, ...]
    matched_by: str = ""
    bare: bool = False

    @property
    def expected(self) -> bool:
        return self.matched_by == EXPECTED


def draw(facts: Facts) -> Topology:
    host = _host(facts)
    guest = _guest(facts)
    matching = match_devices(facts, [gpu.address for gpu in host], [gpu.address for gpu in guest])
    rows = {gpu.address: i for i, gpu in enumerate(host)}
    emulated = board(facts)
    return Topology(
        host,
        guest,
        tuple((rows[address], i) for address, i in matching.pairs),
        facts.value(VIRT_KIND) not in (None, "none"),
        emulated.value if emulated else "",
        tuple(_notes(facts, host, guest, matched=bool(matching.pairs))),
        matching.how,
        facts.value(VIRT_KIND) == "none",
    )


def _notes(facts: Facts, host: tuple[HostGpu, ...], guest: tuple[GuestGpu, ...], *, matched: bool) -> Iterator[str]:
    pooled = any(slot.mapping for slot in facts.value(VM_HOSTPCI) or ())
    if host and guest and not matched and pooled:
        pool = facts.value(PCI_MAPPINGS)
        count = f" of {len(pool)} devices" if pool else ""
        yield (
            f"The VM takes its GPUs from a mapping pool{count}: which slot got which GPU is decided at "
            "each start. The running QEMU command line would tell."
        )
    if not host:
        yield "The host’s side is unknown: only the host can say how the GPUs are wired."
    if not guest:
        yield "The guest’s GPUs are unknown."


def _host(facts: Facts) -> tuple[HostGpu, ...]:
    paths = facts.value(GPU_PATHS) or ()
    groups = {device: group.group for group in facts.value(IOMMU_GROUPS) or () for device in group.devices}
    redirects = peer_redirects(facts)
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


def peer_redirects(facts: Facts) -> Callable[[GpuPath], bool | None]:
    """What the ports that a GPU's peer traffic could turn in do with it.

    PCI Express base specification, Access Control Services: below a switch its own ports decide, and
    without one there is only the root port.
    """
    ports = {port.pci_address: port.redirect for port in facts.value(ACS) or ()}
    above = {node.address: node.path for node in facts.value(PCI_TREE) or ()}

    def of(path: GpuPath) -> bool | None:
        bridges = above.get(path.pci_address, ())[1:] if path.switch else (path.root_port or "",)
        redirects = [ports[bridge] for bridge in bridges or (path.switch or "",) if bridge in ports]
        return any(redirects) if redirects else None

    return of


def _group(number: int | None) -> str:
    return "" if number is None else f"group {number}"


def _guest(facts: Facts) -> tuple[GuestGpu, ...]:
    bridges = _shared_bridges(facts)
    gpus = facts.value(GPUS)
    if gpus:
        named = [(f"GPU {gpu.index}", gpu.pci_address or "") for gpu in gpus]
    else:
        on_bus = facts.value(PCI_GPUS) or ()
        named = [(f"GPU at {short(gpu.pci_address)}", gpu.pci_address) for gpu in on_bus]
    slots = slots_of(facts, [address for _, address in named])
    return tuple(
        GuestGpu(name, address, f"hostpci{slots[i].slot}" if i in slots else "", bridges.get(i, ""))
        for i, (name, address) in enumerate(named)
    )


def _shared_bridges(facts: Facts) -> dict[int, str]:
    """Which bridge each GPU shares with others, by what `topo -m` calls PIX or PXB."""
    matrix = facts.value(TOPOLOGY)
    if matrix is None:
        return {}
    near = {pair for pair, link in matrix.gpu_links().items() if link in {"PIX", "PXB"}}
    bridge_of: dict[int, str] = {}
    count = 0
    for i, name in enumerate(matrix.gpus):
        if i in bridge_of or not any(name in pair for pair in near):
            continue
        count += 1
        bridge_of |= {matrix.gpus.index(one): f"bridge {count}" for one in _joined(name, near)}
    return bridge_of


def _joined(name: str, near: set[tuple[str, str]]) -> set[str]:
    """Every GPU that can be reached from one over near pairs."""
    reached, ahead = {name}, [name]
    while ahead:
        here = ahead.pop()
        neighbours = {b if a == here else a for a, b in near if here in (a, b)} - reached
        reached |= neighbours
        ahead += neighbours
    return reached


def short(address: str) -> str:
    """ "01:00.0" of "0000:01:00.0"."""
    return re.sub(r"^0{4,8}:", "", address)
