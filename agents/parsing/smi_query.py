"""`nvidia-smi -q`: one block a GPU, "Key : value" lines nested by indentation.

Key names moved between drivers ("Clocks Throttle Reasons", "GPU Power Readings"), so a value is found by its own key
below its section; pastes without indentation work too.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agents.facts.gpu import Fabric, Gpu
from agents.parsing import smi_lost
from agents.parsing.lspci import full_address
from agents.parsing.nonblank_lines import nonblank_lines
from agents.parsing.smi_value import LINE_CAP, cell_text, number, switch, unquoted, whole

_BLOCK = re.compile(r"^\s*GPU\s?(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\b")
_KEY = re.compile(r"[A-Z][\w ./()-]{1,60}")
_BLOCK_KEYS = frozenset(("Product Name", "GPU UUID", "Persistence Mode", "Virtualization Mode"))
_POWER = ("GPU Power Readings", "Power Readings")


@dataclass(frozen=True, slots=True)
class Block:
    """One GPU's block. values: (section, key) -> text; section "" for keys of the block itself. lines: of the values
    in the Fabric section."""

    address: str
    line: int
    values: dict[tuple[str, str], str] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, *places: tuple[str, str]) -> str | None:
        """The value of the first of these keys that has one."""
        for place in places:
            if place in self.values and (text := cell_text(self.values[place])) is not None:
                return text
        return None


@dataclass(frozen=True, slots=True)
class SmiQuery:
    """driver, cuda: from the head, None in an excerpt. attached: "Attached GPUs", with lost ones."""

    blocks: tuple[Block, ...]
    gpus: tuple[Gpu, ...]
    lines: tuple[int, ...]
    driver: tuple[str, int] | None = None
    cuda: tuple[str, int] | None = None
    attached: tuple[int, int] | None = None


def parse(text: str) -> SmiQuery | None:
    """None without a GPU's block and without the head."""
    head: dict[str, tuple[str, int]] = {}
    blocks: list[Block] = []
    section = ""
    for number_, raw in nonblank_lines(text):
        line = unquoted(raw) if ">" in raw or "[" in raw else raw[:LINE_CAP]
        if "GPU" in line and (opened := _BLOCK.match(line)):
            blocks.append(Block(full_address(opened["address"]), number_))
            section = ""
            continue
        key, is_pair, value = line.partition(": ")
        key = key.strip()
        if not _is_key(key):
            continue
        if is_pair:
            _store_value(key, value, number_, section, head, blocks)
        else:
            section = key
    handles = smi_lost.find(text)
    gpus = smi_lost.with_lost([_gpu(i, b, head) for i, b in enumerate(blocks)], handles)
    count = head.get("Attached GPUs")
    if not gpus and not count and "Driver Version" not in head:
        return None
    lines = tuple(sorted({*(b.line for b in blocks), *(h.line for h in handles)}))
    attached = (int(count[0]), count[1]) if count and count[0].isdecimal() else None
    cuda = head.get("CUDA Version") or head.get("CUDA UMD Version")
    return SmiQuery(tuple(blocks), gpus, lines, head.get("Driver Version"), cuda, attached)


@lru_cache(maxsize=1024)  # the same in every GPU's block
def _is_key(text: str) -> bool:
    return bool(_KEY.fullmatch(text))


def _store_value(
    key: str, value: str, line: int, section: str, head: dict[str, tuple[str, int]], blocks: list[Block]
) -> None:
    """Stores a value; a key that occurs once in a block is stored without its section."""
    value = value.strip()
    if not blocks:
        if cell_text(value) is not None:
            head.setdefault("Driver Version" if key == "KMD Version" else key, (value, line))
        return
    place = ("", key) if key in _BLOCK_KEYS else (section, key)
    blocks[-1].values.setdefault(place, value)
    if section == "Fabric":
        blocks[-1].lines.setdefault(place, line)


def _gpu(index: int, block: Block, head: dict[str, tuple[str, int]]) -> Gpu:
    values: dict[str, Any] = {name: read for name, read in _texts(block).items() if read is not None}
    driver = head.get("Driver Version")
    return Gpu(index, pci_address=block.address, driver=driver[0] if driver else None, lost=_is_lost(block), **values)


def _texts(block: Block) -> dict[str, Any]:
    def ask(*places: tuple[str, str]) -> str:
        return block.get(*places) or ""

    draws = ("Instantaneous Power Draw", "Power Draw", "Average Power Draw")
    limits = ("Current Power Limit", "Power Limit", "Enforced Power Limit")
    return {
        "name": block.get(("", "Product Name")),
        "uuid": block.get(("", "GPU UUID")),
        "vram_mib": whole(ask(("FB Memory Usage", "Total"))),
        "memory_used_mib": whole(ask(("FB Memory Usage", "Used"))),
        "pcie_gen": whole(ask(("PCIe Generation", "Current"))),
        "pcie_gen_max": whole(ask(("PCIe Generation", "Max"))),
        "pcie_width": whole(ask(("Link Width", "Current"))),
        "pcie_width_max": whole(ask(("Link Width", "Max"))),
        "power_w": number(ask(*((s, d) for s in _POWER for d in draws))),
        "power_limit_w": number(ask(*((s, d) for s in _POWER for d in limits))),
        "sm_clock_mhz": whole(ask(("Clocks", "SM"))),
        "sm_clock_max_mhz": whole(ask(("Max Clocks", "SM"))),
        "temperature_celsius": whole(ask(("Temperature", "GPU Current Temp"))),
        "utilisation_percent": whole(ask(("Utilization", "GPU"), ("Utilization", "Gpu"))),
        "memory_utilisation_percent": whole(ask(("Utilization", "Memory"))),
        "mig": switch(ask(("MIG Mode", "Current"))),
        "virtualisation_mode": block.get(("", "Virtualization Mode")),
        "persistence": switch(ask(("", "Persistence Mode"))),
    }


def _is_lost(block: Block) -> bool:
    return any(map(_says_lost, block.values.values()))


@lru_cache(maxsize=1024)
def _says_lost(value: str) -> bool:
    return "gpu is lost" in value.lower()


def gaps(query: SmiQuery) -> tuple[str, ...]:
    """The parts of a whole `nvidia-smi -q` of these GPUs that this text lacks."""
    missing = []
    if query.attached and query.attached[0] > len(query.blocks):
        missing.append(f"{query.attached[0] - len(query.blocks)} of {query.attached[0]} GPUs")
    for index, block in enumerate(query.blocks):
        if ("FB Memory Usage", "Total") not in block.values:
            missing.append(f"memory of GPU {index}")
        if ("PCIe Generation", "Current") not in block.values:
            missing.append(f"PCIe link of GPU {index}")
    return tuple(missing)


def fabric(query: SmiQuery) -> tuple[Fabric, tuple[int, ...]] | None:
    """The least ready GPU's fabric state and its lines; None where no GPU has a state.

    State "Completed" with status "Success" is ready (NVML nvmlGpuFabricState_t); all else is not.
    """
    states: list[tuple[bool, Fabric, tuple[int, ...]]] = []
    for block in query.blocks:
        state = block.get(("Fabric", "State"))
        if state is None:
            continue
        status, health = block.get(("Fabric", "Status")), _health(block)
        good = state == "Completed" and status in (None, "Success") and health in (None, "Healthy")
        keys = (("Fabric", "State"), ("Fabric", "Status"))
        lines = tuple(block.lines[key] for key in keys if key in block.lines)
        states.append((good, Fabric(state, status, health), lines))
    if not states:
        return None
    _, worst, lines = min(states, key=lambda item: item[0])
    return worst, lines


def _health(block: Block) -> str | None:
    faults = [
        key
        for (section, key), value in block.values.items()
        if section == "Health" and value == "True" and key != "Summary"
    ]
    summary = block.get(("Health", "Summary"))
    return f"{summary or 'Unhealthy'}: {', '.join(faults)}" if faults else summary


def has_fabric_section(query: SmiQuery) -> bool:
    return any(map(_has_fabric, query.blocks))


def blocks_without_fabric(query: SmiQuery) -> int:
    """The number of announced or listed GPUs without a Fabric section in this text."""
    announced = query.attached[0] if query.attached else 0
    return max(announced, len(query.blocks)) - sum(map(_has_fabric, query.blocks))


def _has_fabric(block: Block) -> bool:
    return any(section == "Fabric" for section, _ in block.values)
