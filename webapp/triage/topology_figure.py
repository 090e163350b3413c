"""The topology as drawing coordinates: host above, guest below, labels clear of every line."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.diagnosis.topology import Topology, short

COLUMN = 145.0
LEFT = 20.0
BOX = 132.0


@dataclass(frozen=True, slots=True)
class Box:
    kind: str
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def rows(self) -> list[tuple[float, str, bool]]:
        """(y, text, is first) of each line, centred in the box."""
        top = self.y + self.height / 2 - 8 * (len(self.lines) - 1) + 4
        return [(top + 16 * i, text, i == 0) for i, text in enumerate(self.lines)]


@dataclass(frozen=True, slots=True)
class Wire:
    kind: str
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class Figure:
    """title_y: where the two headings stand; width, height: the viewBox."""

    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    host_title_y: float
    guest_title_y: float
    width: float
    height: float


def figure(topology: Topology) -> Figure | None:
    columns = max(len(topology.host), len(topology.guest))
    if columns == 0:
        return None
    width = LEFT * 2 + COLUMN * columns - (COLUMN - BOX)
    boxes: list[Box] = []
    wires: list[Wire] = []
    y = _host(topology, width, boxes, wires) if topology.host else 10.0
    lowest = y
    # The guest's heading stands below its boxes, so that no dashed line crosses it.
    y += 46 if topology.host else 0
    bottom = _guest(topology, width, y, boxes, wires)
    for host_index, guest_index in topology.matches:
        top = LEFT + COLUMN * host_index + BOX / 2
        end = LEFT + COLUMN * guest_index + BOX / 2
        wires.append(Wire("match", top, lowest, end, y))
    return Figure(tuple(boxes), tuple(wires), 20.0, bottom + 26, width, bottom + 40)


def _host(topology: Topology, width: float, boxes: list[Box], wires: list[Wire]) -> float:
    """Root complexes, ports, GPUs; returns the lower edge."""
    boxes.append(Box("root", LEFT, 36, width - 2 * LEFT, 30, ("processor and its I/O die",)))
    for i, gpu in enumerate(topology.host):
        x = LEFT + COLUMN * i
        port = Box(
            "port",
            x,
            88,
            BOX,
            42,
            (f"root {gpu.root_complex}", f"port {short(gpu.port)}" if gpu.port else ""),
        )
        end = Box("real", x, 152, BOX, 56, (f"GPU {short(gpu.address)}", gpu.group, gpu.link))
        wires.append(Wire("wire", port.middle, 66, port.middle, 88))
        wires.append(Wire("wire", port.middle, 130, port.middle, 152))
        boxes += [_trimmed(port), _trimmed(end)]
    return 208.0


def _guest(
    topology: Topology, width: float, y: float, boxes: list[Box], wires: list[Wire]
) -> float:
    """GPUs on top, so that the dashed lines end at them; emulated buses below; returns the lower edge."""
    kind = "fake" if topology.emulated else "port"
    shared = [i for i, gpu in enumerate(topology.guest) if gpu.bridge]
    for i, gpu in enumerate(topology.guest):
        box = Box(kind, LEFT + COLUMN * i, y, BOX, 44, (gpu.name, gpu.slot or short(gpu.address)))
        boxes.append(_trimmed(box))
        wires.append(Wire("wire", box.middle, y + 44, box.middle, y + (66 if i in shared else 104)))
    if shared:
        x = LEFT + COLUMN * shared[0]
        span = COLUMN * (shared[-1] - shared[0]) + BOX
        boxes.append(
            Box(kind, x, y + 66, span, 24, ("one emulated bridge: why topo -m says PIX here",))
        )
        wires.append(Wire("wire", x + span / 2, y + 90, x + span / 2, y + 104))
    boxes.append(
        Box(kind, LEFT, y + 104, width - 2 * LEFT, 24, (f"bus of the {topology.board or 'guest'}",))
    )
    return y + 128


def _trimmed(box: Box) -> Box:
    return Box(box.kind, box.x, box.y, box.width, box.height, tuple(t for t in box.lines if t))
