"""The address regions (BARs) of each NVIDIA GPU, also those without an address.

sysfs `resource`: a line a region, "start end flags" (Documentation/PCI/sysfs-pci.rst; flags from
include/linux/ioport.h). NVIDIA GPUs have three memory regions: registers, framebuffer, and a third
for instance memory; a 64-bit region takes two lines.
"""

import re
from collections.abc import Iterator

from agents.facts.gpu import BARS, Bar
from agents.parsing import lspci, lspci_caps
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.guest.pci_devices import PCI

_NO_GPU = "no NVIDIA display function on the PCI bus"
_SH = rf"""gpus=$(gpus)
for d in $gpus; do echo "resource of ${{d##*/}}"; cat "$d/resource"; done
[ "$gpus" ] || echo '{_NO_GPU}'"""

_OPENED = re.compile(r"^resource of ([0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])$")
_ROW = re.compile(r"^\s*0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16})\s*$")
_IS_MEMORY = 0x200
_IS_64_BIT = 0x100000
_STANDARD_BARS = 6

_Row = tuple[int, int, int]


def parse(output: Output) -> Readings:
    bars: list[Bar] = []
    lines: list[int] = []
    missing = []
    for address, line, rows in _blocks(output.stdout):
        bars += _bars(address, rows)
        lines.append(line)
        if len(rows) < _STANDARD_BARS:
            missing.append(f"{address}: {_STANDARD_BARS - len(rows)} lines")
    if not bars:
        return _from_lspci(output)
    return (BARS.known(tuple(bars), lines=tuple(lines), missing=tuple(missing)),)


def _from_lspci(output: Output) -> Readings:
    read = [lspci_caps.bars(device) for device in lspci.gpus(lspci.parse(output.stdout))]
    bars = tuple(bar for device_bars, _ in read for bar in device_bars)
    if bars:
        return (BARS.known(bars, lines=tuple(line for _, lines in read for line in lines)),)
    if _NO_GPU in output.stdout[:2000]:
        return (BARS.absent(_NO_GPU),)
    if output.tool_missing:
        return (BARS.unsupported("no sysfs"),)
    return (BARS.unreadable("neither sysfs resources nor lspci regions of an NVIDIA GPU"),)


def _blocks(text: str) -> Iterator[tuple[str, int, list[_Row]]]:
    address, line = "", 0
    rows: list[_Row] = []
    for number, raw in enumerate(text.splitlines(), 1):
        opened, row = _OPENED.match(raw[:100]), _ROW.match(raw[:100])
        if opened:
            if address:
                yield address, line, rows
            address, line, rows = opened[1], number, []
        elif row and address and len(rows) < _STANDARD_BARS:
            rows.append((int(row[1], 16), int(row[2], 16), int(row[3], 16)))
    if address:
        yield address, line, rows


def _bars(address: str, rows: list[_Row]) -> list[Bar]:
    """The three regions stand at lines 0, 1 and 3, or 0, 2 and 4 where the registers are 64 bits wide.

    Without registers the lines of the others are unknown, so only regions with an address count.
    """
    registers = _bar(address, 0, rows[0]) if rows else None
    if registers is None:
        return []
    if registers.size_mib == 0:
        placed = (_bar(address, at, row) for at, row in enumerate(rows[1:], 1))
        return [registers, *(bar for bar in placed if bar and bar.size_mib)]
    first = 2 if rows[0][2] & _IS_64_BIT else 1
    others = (_bar(address, at, rows[at]) for at in (first, first + 2) if at < len(rows))
    return [registers, *(bar for bar in others if bar)]


def _bar(address: str, at: int, row: _Row) -> Bar | None:
    """None for I/O ports. A region without an address starts at 0, whatever size it shows."""
    start, end, flags = row
    if flags and not flags & _IS_MEMORY:
        return None
    size_mib = -(-(end - start + 1) // 1024**2) if start and end > start else 0
    return Bar(address, at, size_mib, f"0x{start:x}" if size_mib else None)


probe = Probe(
    __name__,
    title="GPU address regions",
    commands=(Command(_SH, calls=PCI),),
    supplies=(BARS,),
    parse=parse,
    signature=Signature(
        typed=r"/sys/bus/pci/devices/\S*/resource\b",
        starts=(r"^resource of [0-9a-f]{4}:",),
        belongs=r"^0x[0-9a-f]{16} 0x|^resource of ",
        any_machine=True,
    ),
)
