"""`nvidia-smi --query-gpu=… --format=csv`: any columns, with or without header and units.

A row is a line with as many cells as the header; lines that a terminal wrapped are joined. Without a header only
columns with unmistakable values count (index, name, UUID, PCI address, driver).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.facts.gpu import Gpu
from agents.parsing import smi_lost
from agents.parsing.lspci import full_address
from agents.parsing.smi_value import ADDRESS, cell_text, is_error, number, switch, unquoted, whole

# Names of `nvidia-smi --help-query-gpu`; mig.mode.current since driver 450.
COLUMNS = (
    *("index", "name", "uuid", "pci.bus_id", "driver_version"),
    *("pcie.link.gen.current", "pcie.link.gen.max"),
    *("pcie.link.width.current", "pcie.link.width.max"),
    *("power.draw", "power.limit", "utilization.gpu", "utilization.memory"),
    *("memory.used", "memory.total", "clocks.current.sm", "clocks.max.sm"),
    *("temperature.gpu", "mig.mode.current", "persistence_mode"),
)
OLD_COLUMNS = (
    *("index", "name", "uuid", "pci.bus_id", "driver_version", "memory.total", "memory.used"),
    *("power.draw", "power.limit", "utilization.gpu", "temperature.gpu"),
)
_WANTED = ("name", "pci.bus_id", "memory.total", "pcie.link.width.current", "power.draw")
_WRAP_LIMIT = 6


@dataclass(frozen=True, slots=True)
class GpuTable:
    """gpus: in order of index, with the unreachable ones. missing: for Reading.missing."""

    gpus: tuple[Gpu, ...]
    lines: tuple[int, ...]
    missing: tuple[str, ...] = ()


def _address(cell: str) -> str | None:
    match = ADDRESS.fullmatch(cell.strip())
    return full_address(match[0]) if match else None


_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "index": ("index", whole),
    "name": ("name", cell_text),
    "gpu_name": ("name", cell_text),
    "uuid": ("uuid", cell_text),
    "gpu_uuid": ("uuid", cell_text),
    "pci.bus_id": ("pci_address", _address),
    "gpu_bus_id": ("pci_address", _address),
    "driver_version": ("driver", cell_text),
    "memory.total": ("vram_mib", whole),
    "memory.used": ("memory_used_mib", whole),
    "pcie.link.gen.current": ("pcie_gen", whole),
    "pcie.link.gen.max": ("pcie_gen_max", whole),
    "pcie.link.width.current": ("pcie_width", whole),
    "pcie.link.width.max": ("pcie_width_max", whole),
    "power.draw": ("power_w", number),
    "power.draw.average": ("power_w", number),
    "power.limit": ("power_limit_w", number),
    "enforced.power.limit": ("power_limit_w", number),
    "clocks.current.sm": ("sm_clock_mhz", whole),
    "clocks.sm": ("sm_clock_mhz", whole),
    "clocks.max.sm": ("sm_clock_max_mhz", whole),
    "temperature.gpu": ("temperature_celsius", whole),
    "utilization.gpu": ("utilisation_percent", whole),
    "utilization.memory": ("memory_utilisation_percent", whole),
    "mig.mode.current": ("mig", switch),
    "persistence_mode": ("persistence", switch),
}
_FIELD = re.compile(r"[a-z][a-z0-9_.]*")
_UNIT = re.compile(r"\s*\[[^\]]*\]?$")
_UUID = re.compile(r"GPU-[0-9a-fA-F-]{4,40}")
_DRIVER = re.compile(r"\d{3}\.\d{2,3}(?:\.\d{2})?")
_NAME = re.compile(r"(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|GRID|RTX|GTX)\b.*|[ABHLTV]\d{1,3}\b.*|ERR!", re.IGNORECASE)
_SHAPE: dict[str, re.Pattern[str]] = {
    "index": re.compile(r"\d{1,3}"),
    "uuid": _UUID,
    "gpu_uuid": _UUID,
    "pci.bus_id": ADDRESS,
    "gpu_bus_id": ADDRESS,
    "driver_version": re.compile(r"\d{3}\.[\d.]+"),
}


def parse(text: str) -> GpuTable | None:
    """None when the text holds neither a row nor an unreachable GPU."""
    lines = [unquoted(line) for line in text.splitlines()]
    handles = smi_lost.find(text)
    header = _find_header(lines)
    table = _with_header(lines, *header) if header else _without_header(lines)
    if not table.gpus and not handles:
        return None
    numbers = sorted({*table.lines, *(handle.line for handle in handles)})
    return GpuTable(smi_lost.with_lost(table.gpus, handles), tuple(numbers), table.missing)


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _fields(line: str) -> list[str]:
    """The field names when every cell is one; else empty."""
    cells = [_UNIT.sub("", cell) for cell in cells_of(line) if cell.strip()]
    return cells if cells and all(_FIELD.fullmatch(cell) for cell in cells) else []


def _find_header(lines: Sequence[str]) -> tuple[int, list[str], int] | None:
    """Index of the header's last line, the fields, and the width of the wrapping (0: none)."""
    for first, line in enumerate(lines):
        names = _fields(line)
        if not names or "pid" in names or not any(name in _FIELDS for name in names):
            continue
        last, joined = first, line
        for below in lines[first + 1 : first + _WRAP_LIMIT]:
            if not _goes_on(joined, below):
                break
            last, joined = last + 1, joined + below
        return last, _fields(joined) or names, len(line) if last > first else 0
    return None


def _goes_on(header: str, below: str) -> bool:
    """Whether the line continues the header: names alone, or the rest of a name cut in two."""
    joined = _fields(header + below)
    if not joined or not below.strip():
        return False
    return bool(_fields(below)) or joined[len(_fields(header)) - 1] in _FIELDS


def _with_header(lines: Sequence[str], start: int, fields: list[str], broken_at: int) -> GpuTable:
    gpus: dict[int, Gpu] = {}
    numbers: list[int] = []
    cut: list[str] = []
    at = start + 1
    while at < len(lines):
        row, used = _join_row(lines, at, len(fields), broken_at)
        at += used
        if not _row_fits(fields, row):
            continue
        gpu = _gpu(fields, row, len(gpus))
        if gpus.setdefault(gpu.index, gpu) is not gpu:
            continue
        numbers.extend(range(at - used + 1, at + 1))
        if len(row) < len(fields):
            cut.append(f"row of GPU {gpu.index} is cut")
    not_asked = [f"column {name}" for name in _WANTED if name not in fields]
    return GpuTable(tuple(gpus.values()), tuple(numbers), (*not_asked, *cut))


def _join_row(lines: Sequence[str], at: int, width: int, broken_at: int) -> tuple[list[str], int]:
    """The cells of the row that starts on line `at`, and its number of lines."""
    joined = lines[at]
    first = cells_of(joined)
    if not joined.strip() or (len(first) >= width and len(joined) != broken_at):
        return first, 1
    for used in range(2, min(_WRAP_LIMIT, len(lines) - at) + 1):
        below = lines[at + used - 1]
        joined += below
        cells = cells_of(joined)
        if below.count(",") >= width - 1 or len(cells) > width:
            break
        if len(cells) == width and len(below) != broken_at:
            return cells, used
    return first, 1


def _row_fits(fields: Sequence[str], row: Sequence[str]) -> bool:
    """Whether the cells fit these fields: a cut row needs one unmistakable cell, a whole row no wrong cell."""
    if not row[0] or len(row) > len(fields) or (len(row) == 1 < len(fields)):
        return False
    shaped = [
        (cell, _SHAPE[name])
        for name, cell in zip(fields, row, strict=False)
        if name in _SHAPE and cell_text(cell) is not None
    ]
    telling = bool(shaped) or len(row) == len(fields)
    return telling and all(shape.fullmatch(cell) for cell, shape in shaped)


def _gpu(fields: Sequence[str], row: Sequence[str], position: int) -> Gpu:
    values: dict[str, Any] = {"index": position}
    for name, cell in zip(fields, row, strict=False):
        if name in _FIELDS:
            attribute, read = _FIELDS[name]
            value = read(cell)
            if value is not None:
                values[attribute] = value
    return Gpu(**values, lost=_is_lost(fields, row))


def _is_lost(fields: Sequence[str], row: Sequence[str]) -> bool:
    """Whether the GPU is lost: the driver says so, or at least two cells, and half of those read from the chip, are
    errors."""
    if any("gpu is lost" in cell.lower() for cell in row):
        return True
    cells = [c for n, c in zip(fields, row, strict=False) if n not in ("index", "driver_version")]
    errors = sum(is_error(cell) for cell in cells)
    return errors >= 2 and 2 * errors >= len(cells)


def _without_header(lines: Sequence[str]) -> GpuTable:
    rows = [(number, cells_of(line)) for number, line in enumerate(lines, 1) if "," in line]
    rows = [(number, row) for number, row in rows if _tells_a_gpu(row)]
    width = len(rows[0][1]) if rows else 0
    rows = [(number, row) for number, row in rows if len(row) == width]
    fields = _our_columns([row for _, row in rows]) or _guess_fields([row for _, row in rows])
    gpus: dict[int, Gpu] = {}
    for _, row in rows:
        gpu = _gpu(fields, row, len(gpus))
        gpus.setdefault(gpu.index, gpu)
    missing = () if fields == list(COLUMNS) else ("the header, so columns without a mark are not read",)
    return GpuTable(tuple(gpus.values()), tuple(number for number, _ in rows), missing)


def _tells_a_gpu(row: Sequence[str]) -> bool:
    """Whether the row shows a GPU: a UUID, an address, or an index before a product name."""
    if any(_UUID.fullmatch(cell) or ADDRESS.fullmatch(cell) for cell in row):
        return True
    return row[0].isdecimal() and len(row[0]) < 4 and any(_NAME.fullmatch(cell) for cell in row[1:])


def _our_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    for columns in (COLUMNS, OLD_COLUMNS):
        if rows and all(len(row) == len(columns) and _row_fits(columns, row) for row in rows):
            return list(columns)
    return []


def _guess_fields(rows: Sequence[Sequence[str]]) -> list[str]:
    """A field for each column whose values all have the field's form; "" for the others."""
    fields = [""] * (len(rows[0]) if rows else 0)
    for at in range(len(fields)):
        column = [row[at] for row in rows]
        if at == 0 and all(c.isdecimal() and len(c) < 4 for c in column):
            fields[at] = "index"
            continue
        for name, shape in (("uuid", _UUID), ("pci.bus_id", ADDRESS), ("name", _NAME)):
            if name not in fields and all(shape.fullmatch(cell) for cell in column):
                fields[at] = name
        is_driver = len(set(column)) == 1 and _DRIVER.fullmatch(column[0])
        if not fields[at] and is_driver and not column[0].endswith(".00"):
            fields[at] = "driver_version" if "driver_version" not in fields else ""
    return fields
