"""PCI capabilities and regions: from `lspci -vv` text and from dumps of config space.

Dumps: `od -Ax -v -tx1`, `xxd -g1`, `hexdump -C`, `lspci -xxx`. The GPUDirect clique is an 8-byte
vendor-specific capability (id 0x09): id, next, length 8, "P2P", clique << 3, 0; QEMU puts it at 0xc8,
or 0xd4 where that is taken (QEMU hw/vfio/pci-quirks.c, vfio_add_nv_gpudirect_cap).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from agents.facts.gpu import Bar
from agents.parsing.lspci import LINE_CAP, Device

STANDARD_HEADER_BYTES = 64
CONFIG_BYTES = 256

# Address, 1-based line of its opening, and the numbered lines below.
Numbered = Iterable[tuple[int, str]]
Block = tuple[str, int, Numbered]

_CONFIG_OF = re.compile(r"^config of ([0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])$")
_ROW = re.compile(
    r"^\s*(?:0x)?(?P<offset>[0-9a-f]{2,8}):?\s+(?P<bytes>(?:[0-9a-f]{2} {1,2}){15}[0-9a-f]{2})(?=\s|$)", re.IGNORECASE
)
_CAPABILITY = re.compile(r"Capabilities: \[([0-9a-f]{2,3})(?: v\d)?\] (.{0,200})")
_BEHIND = re.compile(r"Capabilities: \[[1-9a-f]\w\w v\d|^\s*Kernel (?:driver in use|modules):")
_CLIQUE = re.compile(r"^Vendor Specific Information: Len=08\b")
_REGION = re.compile(r"^\s*Region (\d): Memory at (?P<at><?[0-9a-z]+>?)(?P<rest>.{0,200})$", re.IGNORECASE)
_SIZE = re.compile(r"\[size=(\d{1,9})([KMGT]?)\]")
_MIB = {"": 1 / 1024**2, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
_VENDOR_SPECIFIC = 0x09
_CLIQUE_OFFSETS = ("c8", "d4")


@dataclass(frozen=True, slots=True)
class CliqueCapability:
    """clique_id None: plain `lspci -vv` shows the capability's place and not its content."""

    offset: int
    clique_id: int | None
    line: int


def dumps(text: str) -> Iterator[Block]:
    """The blocks of our loop, each after a line "config of <address>"."""
    if "config of " not in text:
        return
    address, line = "", 0
    block: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        opened = _CONFIG_OF.match(raw[:100])
        if opened:
            if address:
                yield address, line, tuple(block)
            address, line, block = opened[1], number, []
        elif address:
            block.append((number, raw))
    if address:
        yield address, line, tuple(block)


def config_space(lines: Iterable[tuple[int, str]]) -> bytes:
    """The leading bytes of a dump, up to its first gap. Other lines are skipped."""
    space = bytearray()
    for _, line in lines:
        row = _ROW.match(line[:LINE_CAP])
        if row and int(row["offset"], 16) == len(space) < CONFIG_BYTES:
            space += bytes.fromhex(row["bytes"])
    return bytes(space[:CONFIG_BYTES])


def capabilities(space: bytes) -> Mapping[int, int]:
    """Offset -> capability id, following the list from 0x34 (PCI Local Bus 3.0, 6.7)."""
    by_offset: dict[int, int] = {}
    if len(space) < CONFIG_BYTES or not space[0x06] & 0x10:
        return by_offset
    at = space[0x34] & 0xFC
    while at >= STANDARD_HEADER_BYTES and at not in by_offset:
        by_offset[at] = space[at]
        at = space[at + 1] & 0xFC
    return by_offset


def clique_in_config(space: bytes) -> CliqueCapability | None:
    for offset, capability in capabilities(space).items():
        if capability == _VENDOR_SPECIFIC and space[offset + 2 : offset + 6] == b"\x08P2P":
            return CliqueCapability(offset, space[offset + 6] >> 3 & 0xF, 0)
    return None


def clique_in_text(lines: Iterable[tuple[int, str]]) -> CliqueCapability | None:
    """An 8-byte vendor-specific capability at one of QEMU's two offsets."""
    for number, line in lines:
        match = _CAPABILITY.search(line[:LINE_CAP]) if "Vendor Specific" in line else None
        if match and match[1].lower() in _CLIQUE_OFFSETS and _CLIQUE.match(match[2]):
            return CliqueCapability(int(match[1], 16), None, number)
    return None


def lists_all_standard(lines: Iterable[tuple[int, str]]) -> bool:
    """Whether `lspci -vv` printed the standard list to its end: the text after the list is there."""
    begun = False
    for _, line in lines:
        if begun and _BEHIND.search(line[:LINE_CAP]):
            return True
        begun = begun or "Capabilities: [" in line
    return False


def access_denied(lines: Iterable[tuple[int, str]]) -> bool:
    return any("<access denied>" in line for _, line in lines)


def bars(device: Device) -> tuple[tuple[Bar, ...], tuple[int, ...]]:
    """The memory regions that `lspci -v` lists; size 0 where it says <unassigned> or <ignored>."""
    regions: list[Bar] = []
    lines: list[int] = []
    for number, line in device.details:
        region = _REGION.match(line[:LINE_CAP]) if "emory at" in line else None
        if region is None:
            continue
        size = _SIZE.search(region["rest"])
        placed = not region["at"].startswith("<")
        mib = ceil(int(size[1]) * _MIB[size[2]]) if size and placed else 0
        address = f"0x{region['at'].lower()}" if placed else None
        if placed and size is None:
            continue
        regions.append(Bar(device.address, int(region[1]), mib, address))
        lines.append(number)
    return tuple(regions), tuple(lines)
