"""Trees drawn as pciutils draws them (ls-tree.c) read back to the same places."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts.platform import MachineType
from agents.parsing import lspci_tree

pytestmark = pytest.mark.thorough

Place = tuple[str, str, tuple[str, ...], str]


@dataclass(frozen=True)
class Device:
    slot: str
    name: str = ""
    below: tuple[Device, ...] | None = None


NAMES = st.sampled_from(["NVIDIA Corporation Device 2331", "X [AMD] Bridge [1022:14a4]", "Y-Z +- a"])
SLOTS = st.lists(st.integers(0, 31), min_size=1, max_size=3, unique=True)


def devices(depth: int) -> st.SearchStrategy[tuple[Device, ...]]:
    ends = st.builds(Device, st.just(""), NAMES)
    bridges = st.builds(Device, st.just(""), st.just(""), devices(depth - 1)) if depth else ends
    shapes = st.lists(ends | bridges, min_size=1, max_size=3)
    return st.builds(_on_slots, shapes, SLOTS)


def _on_slots(shapes: list[Device], slots: list[int]) -> tuple[Device, ...]:
    placed = zip(sorted(slots), shapes, strict=False)
    return tuple(Device(f"{slot:02x}.0", shape.name, shape.below) for slot, shape in placed)


class _Drawing:
    """Draws one root complex and notes where each device is."""

    def __init__(self, first_bus: int, root: str) -> None:
        self.bus, self.root = first_bus, root
        self.places: list[Place] = []

    def draw(self, below: tuple[Device, ...], bus: str, path: tuple[str, ...]) -> list[str]:
        lines: list[str] = []
        for number, device in enumerate(below):
            block = self._device(device, bus, path)
            last = number == len(below) - 1
            first = "--" if len(below) == 1 else "\\-" if last else "+-"
            rest = "  " if last else "| "
            lines += [first + block[0], *(rest + line for line in block[1:])]
        return lines

    def _device(self, device: Device, bus: str, path: tuple[str, ...]) -> list[str]:
        address = f"{bus}:{device.slot}"
        self.places.append((address, self.root, path, device.name))
        if device.below is None:
            return [f"{device.slot}  {device.name}"]
        self.bus += 1
        head = f"{device.slot}-[{self.bus:02x}]--"
        inner = self.draw(device.below, f"0000:{self.bus:02x}", (*path, address))
        return [head + inner[0], *(" " * len(head) + line for line in inner[1:])]


def _forest(complexes: list[tuple[Device, ...]]) -> tuple[str, list[Place]]:
    lines, places = [], []
    for number, below in enumerate(complexes):
        root = f"0000:{number * 0x40:02x}"
        drawing = _Drawing(number * 0x40, root)
        last = number == len(complexes) - 1
        mark = "-" if len(complexes) == 1 else "-+-" if not number else " \\-" if last else " +-"
        head = f"{mark}[{root}]-"
        block = drawing.draw(below, root, ())
        bar = " |" if len(complexes) > 1 and not last else "  "
        rest = bar[: len(mark)] + " " * (len(head) - len(bar[: len(mark)]))
        lines += [head + block[0], *(rest + line for line in block[1:])]
        places += drawing.places
    return "\n".join(lines), places


@settings(max_examples=60)
@given(st.lists(devices(3), min_size=1, max_size=3), st.sampled_from(["", "> ", "    "]))
def test_a_drawn_tree_reads_back(complexes: list[tuple[Device, ...]], quote: str) -> None:
    text, places = _forest(complexes)
    tree = lspci_tree.parse("\n".join(quote + line for line in text.splitlines()))
    assert tree is not None
    assert [(n.address, n.root, n.path, n.name) for n in tree.nodes] == places
    assert not tree.cut


def test_only_devices_behind_one_switch_share_it() -> None:
    text = "\n".join(
        [
            "-+-[0000:40]-+-01.1-[41-45]----00.0-[42-45]--+-00.0-[43]----00.0  NVIDIA Corporation A",
            " |           |                               \\-01.0-[44]----00.0  NVIDIA Corporation A",
            " |           \\-01.2-[46]----00.0  NVIDIA Corporation A",
            " \\-[0000:80]---01.1-[81]----00.0  NVIDIA Corporation A",
        ]
    )
    tree = lspci_tree.parse(text)
    assert tree is not None
    gpus = lspci_tree.gpus(tree.nodes)
    assert [lspci_tree.switch(gpu) for gpu in gpus] == ["0000:41:00.0", "0000:41:00.0", None, None]


def test_the_emulated_board_of_a_guest() -> None:
    q35 = "-[0000:00]-+-00.0  Intel Corporation 82G33/G31/P35/P31 Express DRAM Controller\n"
    virtio = "           \\-01.0  Red Hat, Inc. Virtio 1.0 GPU\n"
    assert lspci_tree.machine_type(q35 + virtio) is MachineType.Q35
    assert lspci_tree.machine_type(q35) is None
    assert lspci_tree.machine_type("-[0000:00]-+-00.0  Intel 440FX - 82441FX") is MachineType.I440FX
    assert lspci_tree.machine_type("-[0000:00]---00.0  AMD Turin Root Complex") is None
