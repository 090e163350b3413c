"""Proxmox PCI resource mappings: /etc/pve/mapping/pci.cfg and `pvesh get /cluster/mapping/pci`.

Format: Proxmox guest-common, Mapping/PCI.pm. A section line names the mapping; each indented `map` line is a property
string with one alternative device. pvesh prints the same strings as JSON or in a table.
"""

import json
import re
from collections.abc import Iterable

from agents.facts.host import PciMapping

LINE_CAP = 65_536
# The size of the JSON is bounded; a cluster's mappings are a few KiB.
JSON_CAP = 4 * 1024 * 1024

_SECTION = re.compile(r"^(?:>\s?)?(?:pci:\s*)?([A-Za-z][\w-]{0,127})\s*$")
_MAP = re.compile(r"^(?:>\s?)?\s*map\s+(\S*\bpath=\S+)")
_ANY_MAP = re.compile(r"\b(?:id|iommugroup|node|path|subsystem-id)=[^\s\"'│|]*\bpath=[^\s\"'│|]+")
_BORDER = re.compile(r"^[\s┌┬┐├┼┤└┴┘─═╞╪╡╘╧╛╒╤╕+-]*$")
_ADDRESS = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[01][0-9a-f](?:\.[0-7])?)$", re.I)

Answer = tuple[tuple[PciMapping, ...], tuple[int, ...]]


def parse(text: str) -> Answer | None:
    """Every alternative of every mapping and its 1-based line; None when the text holds none.

    path: in full and lower case, several functions of one device joined by ";". mapping "" where the
    text shows a `map` line without the section it belongs to.
    """
    mappings = _from_json(text) or _from_table(text) or _from_config(text)
    if not mappings:
        return None
    return tuple(mapping for mapping, _ in mappings), tuple(line for _, line in mappings)


def _from_config(text: str) -> list[tuple[PciMapping, int]]:
    mappings: list[tuple[PciMapping, int]] = []
    section = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:LINE_CAP]
        opened, alternative = _SECTION.match(line), _MAP.match(line)
        if alternative:
            mappings.append((_mapping(section, alternative[1]), number))
        elif opened:
            section = opened[1]
    return mappings


def _from_json(text: str) -> list[tuple[PciMapping, int]]:
    start = re.search(r"(?m)^\s{0,8}[\[{]", text)
    if start is None or len(text) > JSON_CAP or '"map"' not in text:
        return []
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start.start() :].lstrip())
    except (ValueError, RecursionError):
        return []
    line = text.count("\n", 0, start.end()) + 1
    items = value if isinstance(value, list) else [value]
    return [
        (_mapping(str(item.get("id", "")), alternative), line)
        for item in items
        if isinstance(item, dict)
        for alternative in _strings(item.get("map"))
    ]


def _from_table(text: str) -> list[tuple[PciMapping, int]]:
    """Rows between box-drawing lines; a cell may wrap, and its continuation has no id."""
    rows: list[tuple[list[str], int]] = []
    header: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:LINE_CAP].strip()
        if "│" not in line or _BORDER.match(line):
            continue
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        if not header:
            header = [cell.lower() for cell in cells]
        elif rows and _continues(cells, header):
            rows[-1] = ([a + b for a, b in zip(rows[-1][0], cells, strict=False)], rows[-1][1])
        else:
            rows.append((cells, number))
    return list(_table_mappings(header, rows))


def _continues(cells: list[str], header: list[str]) -> bool:
    return "id" in header and len(cells) == len(header) and not cells[header.index("id")]


def _table_mappings(header: list[str], rows: list[tuple[list[str], int]]) -> Iterable[tuple[PciMapping, int]]:
    if "id" not in header or "map" not in header:
        return
    for cells, number in rows:
        if len(cells) == len(header):
            for match in _ANY_MAP.finditer(cells[header.index("map")]):
                yield _mapping(cells[header.index("id")], match[0]), number


def _strings(value: object) -> list[str]:
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []


def _mapping(name: str, properties: str) -> PciMapping:
    pairs = dict(part.split("=", 1) for part in properties.split(",") if "=" in part)
    group = pairs.get("iommugroup", "")
    return PciMapping(
        mapping=name,
        node=pairs.get("node"),
        path=";".join(_address(part) for part in pairs.get("path", "").split(";")),
        vendor_device=pairs.get("id"),
        iommu_group=int(group) if re.fullmatch(r"\d{1,6}", group) else None,
        subsystem=pairs.get("subsystem-id"),
    )


def _address(text: str) -> str:
    match = _ADDRESS.match(text.strip())
    return f"{match[1] or '0000'}:{match[2]}".lower() if match else text.strip()
