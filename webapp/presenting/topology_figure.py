"""The topology as drawing coordinates: the host's tree on the left, the guest's on the right, one GPU a
row, so that it stays readable with sixteen GPUs and prints on a page.

A column is as wide as its words. What is longer than any column may be is cut; its full text is the box's
title, and stands in the table below the map.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from agents.facts.platform import MachineType
from webapp.diagnosis.situation.topology import GuestGpu, HostGpu, Topology, short
from webapp.diagnosis.wording import called

K = TypeVar("K")
Column = tuple[float, float]  # where it begins, and how wide it is
MARGIN, TOP = 8.0, 52.0
PITCH, BOX_HEIGHT, GROUP_GAP = 44.0, 36.0, 14.0
BETWEEN, MATCH_GAP = 18.0, 84.0
# At least; none is wider than WIDEST.
NODE_WIDTH, PORT_WIDTH, SWITCH_WIDTH, GPU_WIDTH = 108.0, 128.0, 160.0, 166.0
GUEST_WIDTH, BRIDGE_WIDTH, BUS_WIDTH, WIDEST = 150.0, 92.0, 104.0, 300.0
INSIDE = 4.0  # between a box and its text, on either side
HEADING_PX, FIRST_PX, REST_PX = 14.0, 12.5, 11.0
# Mean advance of a letter in the widest face of the font stack (DejaVu Sans), per px of its size.
ADVANCE, BOLD_ADVANCE = 0.62, 0.69

SHARED = "PIX inside"  # what topo -m says of GPUs below one bridge
_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text. y: its baseline. anchor: "start" or "middle"."""

    kind: str
    x: float
    y: float
    text: str
    size_px: float
    anchor: str = "middle"

    @property
    def width(self) -> float:
        """Estimated, on the wide side."""
        return text_width(self.text, self.size_px, bold=self.kind in {"t", "b"})


@dataclass(frozen=True, slots=True)
class Box:
    """kind: node, port, switch, real (a GPU), fake (emulated) or own (a GPU of a machine without VM)."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def title(self) -> str:
        return ", ".join(line for line in self.lines if line)

    @property
    def texts(self) -> tuple[Text, ...]:
        """The lines, centred, each cut to the box."""
        lines = [line for line in self.lines if line]
        top = self.middle - 7.5 * (len(lines) - 1) + 4
        return tuple(
            Text(
                "d" if i else "b",
                self.x + self.width / 2,
                top + 15 * i,
                _fitted_text(line, self.width - 2 * INSIDE, REST_PX if i else FIRST_PX, bold=not i),
                REST_PX if i else FIRST_PX,
            )
            for i, line in enumerate(lines)
        )


@dataclass(frozen=True, slots=True)
class Wire:
    kind: str
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class Figure:
    """width, height: the viewBox, in px at full size."""

    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    headings: tuple[Text, ...]
    width: float
    height: float


def figure(topology: Topology, processor: str = "") -> Figure | None:
    """None while no GPU is known. processor: what the host calls its CPU."""
    if not topology.host and not topology.guest:
        return None
    boxes: list[Box] = []
    wires: list[Wire] = []
    hosts = _host(topology.host, boxes, wires)
    host_end = max((box.right for box in boxes), default=0.0)
    start = host_end + MATCH_GAP if hosts else MARGIN
    beside = _heading(start, *guest_words(topology), 1e3) if topology.guest else []
    guests = _guest(topology, start, _right_edge(beside), boxes, wires)
    for host, guest in topology.matches:
        a, b = hosts[host], guests[guest]
        wires.append(Wire("match", a.right, a.middle, b.x, b.middle))
    end = max(box.right for box in boxes)
    room = (start if guests else end + 200) - MARGIN - BETWEEN
    headings = [*(_heading(MARGIN, *host_words(processor), room) if hosts else []), *beside]
    end = max(end, _right_edge(headings))
    height = max(box.y + box.height for box in boxes) + MARGIN
    return Figure(tuple(boxes), tuple(wires), tuple(headings), end + MARGIN, height)


def text_width(text: str, size_px: float, *, bold: bool) -> float:
    return len(text) * size_px * (BOLD_ADVANCE if bold else ADVANCE)


def host_words(processor: str) -> tuple[str, str]:
    return "Host (real)", f"as it is wired · {processor}".rstrip(" ·")


def guest_words(topology: Topology) -> tuple[str, str]:
    board = board_word(topology)
    if topology.emulated:
        return (
            f"Guest · {board} (emulated)" if board else "Guest (emulated)",
            "drawn by the hypervisor: says nothing of the wiring",
        )
    between = "no hypervisor stands" if topology.bare else "not known whether a hypervisor stands"
    return "As the driver sees it", f"{between} between driver and wiring"


def _right_edge(texts: Iterable[Text]) -> float:
    return max((text.x + text.width for text in texts), default=0.0)


def _heading(x: float, title: str, under: str, room: float) -> list[Text]:
    under = _fitted_text(under, room, REST_PX, bold=False)
    return [Text("t", x, 18.0, title, HEADING_PX, "start"), Text("d", x, 35.0, under, REST_PX, "start")]


# --- the host's tree ------------------------------------------------------------------------------


def _host(gpus: Sequence[HostGpu], boxes: list[Box], wires: list[Wire]) -> dict[int, Box]:
    """NUMA nodes, root ports, switches and GPUs from left to right; the GPUs' boxes by index."""
    order = in_order(gpus)
    nodes, ports, switches, leaves = _columns(gpus)
    gpu_boxes: dict[int, Box] = {}
    y = TOP
    for node, members in runs(order, lambda i: gpus[i].numa_node):
        for i in members:
            gpu_boxes[i] = Box("real", leaves[0], y, leaves[1], BOX_HEIGHT, host_gpu_words(gpus[i]))
            y += PITCH
        parent = _box_around("node", nodes, [gpu_boxes[i] for i in members], node_words(node))
        boxes.append(parent)
        for _, below in runs(members, lambda i: (gpus[i].root_complex, gpus[i].port)):
            _port(gpus, below, gpu_boxes, parent, (ports, switches), boxes, wires)
        y += GROUP_GAP
    boxes += gpu_boxes.values()
    return gpu_boxes


def _columns(gpus: Sequence[HostGpu]) -> tuple[Column, Column, Column, Column]:
    """Columns of the NUMA nodes, root ports, switches (without room where there is none) and GPUs."""
    named = [(f"switch {short(gpu.switch)}",) for gpu in gpus if gpu.switch]
    nodes = (MARGIN, _width(NODE_WIDTH, [node_words(gpu.numa_node) for gpu in gpus]))
    ports = (sum(nodes) + BETWEEN, _width(PORT_WIDTH, map(port_words, gpus)))
    switches = (sum(ports) + BETWEEN, _width(SWITCH_WIDTH, named) if named else -BETWEEN)
    leaves = (sum(switches) + BETWEEN, _width(GPU_WIDTH, map(host_gpu_words, gpus)))
    return nodes, ports, switches, leaves


def in_order(gpus: Sequence[HostGpu]) -> list[int]:
    """Their indices, neighbours on the host's tree one after the other."""
    return sorted(range(len(gpus)), key=lambda i: _sort_key(gpus[i]))


def _sort_key(gpu: HostGpu) -> tuple[float, str, str, str, str]:
    node = float("inf") if gpu.numa_node is None else gpu.numa_node
    return (node, gpu.root_complex, gpu.port, gpu.switch, gpu.address)


def _port(
    gpus: Sequence[HostGpu],
    members: list[int],
    gpu_boxes: dict[int, Box],
    parent: Box,
    columns: tuple[Column, Column],
    boxes: list[Box],
    wires: list[Wire],
) -> None:
    """One root port with the switches and GPUs below it."""
    first = gpus[members[0]]
    port = _box_around("port", columns[0], [gpu_boxes[i] for i in members], port_words(first))
    boxes.append(port)
    wires.append(_wire_between(parent, port))
    for name, below in runs(members, lambda i: gpus[i].switch):
        above = port
        if name:
            lines = (f"switch {short(name)}", acs_words([gpus[i] for i in below]))
            above = _box_around("switch", columns[1], [gpu_boxes[i] for i in below], lines)
            boxes.append(above)
            wires.append(_wire_between(port, above))
        wires += [_wire_between(above, gpu_boxes[i]) for i in below]


def port_words(gpu: HostGpu) -> tuple[str, str]:
    return f"root {gpu.root_complex}", f"port {short(gpu.port)}" if gpu.port else ""


def node_words(node: int | None) -> tuple[str, str]:
    return ("processor", "NUMA not read") if node is None else (f"NUMA {node}", "processor")


def acs_words(gpus: Sequence[HostGpu]) -> str:
    read = [gpu.redirects for gpu in gpus if gpu.redirects is not None]
    if not read:
        return "ACS not read"
    return f"ACS redirects {sum(read)} of {len(gpus)}" if any(read) else "no ACS redirect"


def host_gpu_words(gpu: HostGpu) -> tuple[str, str]:
    about = " · ".join(filter(None, [gpu.group, link_in_words(gpu.link)]))
    return f"GPU {short(gpu.address)}", about


def link_in_words(link: str) -> str:
    """ "Gen5 x16" of "2.5 GT/s x16 (at most 32.0 GT/s x16)": what it can do, since an idle GPU is slow."""
    speeds = re.findall(r"([\d.]+) GT/s x(\d+)", link)
    if not speeds or speeds[-1][0] not in _GENERATIONS:
        return link
    speed, width = speeds[-1]
    return f"Gen{_GENERATIONS[speed]} x{width}"


# --- the guest's tree -----------------------------------------------------------------------------


def _guest(topology: Topology, x: float, end: float, boxes: list[Box], wires: list[Wire]) -> dict[int, Box]:
    """GPUs beside the host's, then the bridges they share and the bus, which reaches to `end` at least."""
    if not topology.guest:
        return {}
    kind = guest_kind(topology)
    words = [guest_gpu_words(gpu) for gpu in topology.guest]
    width = _width(GUEST_WIDTH, words)
    gpu_boxes = {i: Box(kind, x, TOP + PITCH * i, width, BOX_HEIGHT, lines) for i, lines in enumerate(words)}
    bridges = (x + width + BETWEEN, BRIDGE_WIDTH)
    shared = any(gpu.bridge for gpu in topology.guest)
    bus_x = sum(bridges) + BETWEEN if shared else bridges[0]
    bus_width = max(_width(BUS_WIDTH, [bus_words(topology)]), end - bus_x)
    bus = _box_around(kind, (bus_x, bus_width), list(gpu_boxes.values()), bus_words(topology))
    for name, members in runs(list(gpu_boxes), lambda i: topology.guest[i].bridge):
        below = [gpu_boxes[i] for i in members]
        above = bus
        if name:
            above = _box_around(kind, bridges, below, (name, SHARED))
            boxes.append(above)
            wires.append(_wire_between(above, bus))
        wires += [_wire_between(box, above) for box in below]
    boxes += [*gpu_boxes.values(), bus]
    return gpu_boxes


def guest_kind(topology: Topology) -> str:
    return "fake" if topology.emulated else "own" if topology.bare else "unsaid"


def board_word(topology: Topology) -> str:
    """ "" where it is not known."""
    return called(MachineType(topology.board)) if topology.board else ""


def bus_words(topology: Topology) -> tuple[str, str]:
    return board_word(topology) or "PCI", "bus"


def guest_gpu_words(gpu: GuestGpu) -> tuple[str, str]:
    return (gpu.name, " · ".join(filter(None, [gpu.slot, short(gpu.address)])))


# --- small geometry -------------------------------------------------------------------------------


def runs(items: Iterable[int], key: Callable[[int], K]) -> list[tuple[K, list[int]]]:
    """Neighbours with the same key."""
    return [(name, list(group)) for name, group in groupby(items, key=key)]


def _box_around(kind: str, column: Column, rows: Sequence[Box], lines: tuple[str, ...]) -> Box:
    """A box as tall as the rows it holds together."""
    top, bottom = rows[0].y, rows[-1].y + rows[-1].height
    return Box(kind, column[0], top, column[1], bottom - top, lines)


def _width(least: float, boxes: Iterable[tuple[str, ...]]) -> float:
    """The width that the longest line of these boxes needs."""
    needed = (
        text_width(line, REST_PX if i else FIRST_PX, bold=not i) for lines in boxes for i, line in enumerate(lines)
    )
    return min(WIDEST, max([least, *(width + 2 * INSIDE + 1 for width in needed)]))


def _wire_between(left: Box, right: Box) -> Wire:
    """Level, at the height of the smaller of the two."""
    y = min((left, right), key=lambda box: box.height).middle
    return Wire("wire", left.right, y, right.x, y)


def _fitted_text(text: str, width: float, size_px: float, *, bold: bool) -> str:
    room = int(width / (size_px * (BOLD_ADVANCE if bold else ADVANCE)))
    return text if len(text) <= room else text[: max(0, room - 1)] + "…"
