"""`lspci -tv`, `-tvnn` and `-t`: the PCI buses as a tree of characters.

Format: pciutils ls-tree.c. `[0000:40]` opens a root complex, `01.1-[43-53]` is a bridge with its buses
behind it, `+-` and `\\-` continue the branch that opened at that column. Names may hold brackets.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agents.facts.host import PciNode
from agents.facts.platform import MachineType

LINE_CAP = 4000
# The most nested bridges; an invented line must not grow paths without end.
DEPTH_CAP = 32

_QUOTE = re.compile(r"^(?:>\s?)+")
_STEP = re.compile(
    r"(?P<dash>-+)|(?P<branch>[+\\])|"
    r"\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]|"
    r"(?P<device>[01][0-9a-f]\.[0-7])(?![0-9a-f.])",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^[\s|]*(?=[-+\\])")
_TREE = re.compile(r"-\[|[+\\]-(?:\[|[01][0-9a-f]\.[0-7])")
_CUT = re.compile(r"^\s*(?:\.{3,}|…|\[\.\.\.\])\s*$")
_NOT_GPU = re.compile(r"\b(?:Audio|USB|UCSI|Serial|NVSwitch|BlueField|Bridge|Tegra|SMBus)\b", re.I)
_PXB = re.compile(r"QEMU PCIe? Expander|\[1b36:000[9b]\]")
_Q35 = re.compile(r"82G33/G31/P35/P31|\[8086:29c0\]")
_HYPERVISOR = re.compile(r"Red Hat|Virtio|QEMU|\[1af4:|\[1b36:|\[1234:1111\]")


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of the next device. bus None: the start of the line is missing."""

    root: str = ""
    bus: str | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """nodes: in print order, with bridges. lines: 1-based, one per node.

    cut: the text marks an omission, or the branch above some lines is missing.
    """

    nodes: tuple[PciNode, ...]
    lines: tuple[int, ...]
    cut: bool


def parse(text: str) -> Tree | None:
    """The tree; None when no line shows the place of a device."""
    branches: dict[int, _Place] = {}
    nodes: list[PciNode] = []
    lines: list[int] = []
    lost = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw[:LINE_CAP])
        lost = lost or bool(_CUT.match(line))
        lead = _LEAD.match(line)
        if lead is None or not _TREE.search(line):
            continue
        line_nodes, whole = _read_line(line, lead.end(), branches)
        lost = lost or not whole
        nodes += line_nodes
        lines += [number] * len(line_nodes)
    return Tree(tuple(nodes), tuple(lines), lost) if nodes else None


def is_tree(text: str) -> bool:
    """Whether any line looks like a line of the tree."""
    return any(_TREE.search(line[:200]) for line in text.splitlines()[:2000])


def gpus(nodes: Iterable[PciNode]) -> tuple[PciNode, ...]:
    """The NVIDIA nodes except audio functions, switches and network cards.

    The tree prints no classes, so the names decide; function 0 only.
    """
    return tuple(
        n
        for n in nodes
        if n.address.endswith(".0") and ("NVIDIA" in n.name or "[10de:" in n.name) and not _NOT_GPU.search(n.name)
    )


def root_port(node: PciNode) -> str | None:
    return node.path[0] if node.path else None


def switch(node: PciNode) -> str | None:
    """The upstream port of the switch between the root port and the device.

    Devices that share it can reach each other without the root port.
    """
    return node.path[1] if len(node.path) >= 3 else None


def machine_type(text: str) -> MachineType | None:
    """The emulated board of a QEMU guest from its tree; None where the text does not show it.

    Host bridges: QEMU hw/pci-host/i440fx.c (82441FX) and q35.c (82G33, which is also a real board of
    2007, so it counts only beside a device that only hypervisors make).
    """
    lines = [line[:LINE_CAP] for line in text.splitlines()]
    if any("440FX" in line or "[8086:1237]" in line for line in lines):
        return MachineType.I440FX
    emulated = any(_HYPERVISOR.search(line) for line in lines)
    if emulated and any(_Q35.search(line) for line in lines):
        return MachineType.Q35
    return MachineType.PXB if any(_PXB.search(line) for line in lines) else None


def _read_line(line: str, at: int, branches: dict[int, _Place]) -> tuple[list[PciNode], bool]:
    """The nodes of one line, and whether the text shows the branch above them."""
    place, device = _Place(), None
    nodes: list[PciNode] = []
    while step := _STEP.match(line, at):
        if step["branch"] and device is None and at == _first_column(line):
            place = _nearest_branch(branches, at)
            branches[at] = place
        elif step["branch"]:
            branches[at] = place
        elif step["bus"]:
            place, device = _place_behind(place, device, step["domain"], step["bus"].lower()), None
        elif step["device"]:
            device = _address(place, step["device"].lower())
            if device is None or len(place.path) >= DEPTH_CAP:
                return nodes, False
            nodes.append(PciNode(device, place.root, place.path))
        at = step.end()
    name = line[at:].strip()
    if nodes and device and name and line[at : at + 1].isspace():
        last = nodes[-1]
        nodes[-1] = PciNode(last.address, last.root, last.path, name)
    return nodes, True


def _first_column(line: str) -> int:
    lead = _LEAD.match(line)
    return lead.end() if lead else 0


def _nearest_branch(branches: dict[int, _Place], column: int) -> _Place:
    """The branch at this column, or one or two columns beside it where a paste lost leading blanks."""
    for offset in (0, -1, 1, -2, 2):
        if column + offset in branches:
            return branches[column + offset]
    return _Place()


def _place_behind(place: _Place, bridge: str | None, domain: str | None, bus: str) -> _Place:
    """The place behind a bridge, or in a root complex when no bridge leads to it."""
    if bridge is None:
        root = f"{(domain or '0000').lower()}:{bus}"
        return _Place(root, root)
    return _Place(place.root, f"{bridge.split(':')[0]}:{bus}", (*place.path, bridge))


def _address(place: _Place, device: str) -> str | None:
    return f"{place.bus}:{device}" if place.bus else None


def from_path(path: str) -> PciNode | None:
    """A node from its sysfs path: /sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0."""
    parts = path.rstrip("/").split("/")
    root = next((p[3:] for p in parts if re.fullmatch(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", p)), None)
    chain = [p for p in parts if re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", p)]
    if root is None or not chain or len(chain) > DEPTH_CAP:
        return None
    return PciNode(chain[-1], root, tuple(chain[:-1]))
