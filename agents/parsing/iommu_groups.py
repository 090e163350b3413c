"""IOMMU groups in the layouts of the scripts people run, of find and ls, of lspci and of pvesh.

Source of the numbers: Linux, /sys/kernel/iommu_groups/<group>/devices/<address>. A device belongs to the
group its own line names, else to the header above it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from agents.facts.host import IommuGroup
from agents.parsing import pvesh
from agents.parsing.lines_with import lines_with
from agents.parsing.lspci import LINE_CAP, full_address

_BDF = re.compile(r"(?<![0-9a-fA-F:.])(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7](?![0-9a-fA-F.:])")
_SYSFS = re.compile(r"iommu_groups/(\d{1,6})/devices(?:/(\S+)|:?\s*$)")
_HEADER = re.compile(r"^[\s>|*-]*(?:IOMMU[ _-]*)?Group(?:\s*#|\s*:)?\s*(\d{1,6})\b:?(.*)$", re.I)
# It matches within one line and never backtracks, because it searches the whole text.
_PAIR = re.compile(
    r"^(?:[^\S\n]|[>|])*+(\d{1,6})(?:[^\S\n]*+:)?[^\S\n]++"
    r"(?=(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.)",
    re.I,
)
_BARE_HEADER = re.compile(r"(?:IOMMU )?Group (\d{1,6}):?\s*$", re.IGNORECASE)
# The most frequent lines: a device below its group's header.
_PLAIN = re.compile(r"\s+((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7])(?![0-9a-fA-F.:])(.*)")
_ANY_PAIR = re.compile(_PAIR.pattern, re.IGNORECASE | re.MULTILINE)
_ADDED = re.compile(r" ([0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]): Adding to iommu group (\d{1,6})\s*$")
_OWN = re.compile(r"\b(?:iommu_?)?group[=: ]\s*(\d{1,6})\b", re.IGNORECASE)
_CUT = re.compile(r"^[\s>|#]*(?:\.{3,}|…|\[\.\.\.\]|-- ?more ?--)\s*$", re.IGNORECASE)


class _Member(NamedTuple):
    group: int
    address: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Groups:
    """groups: by number. lines: 1-based. cut: the text marks an omission."""

    groups: tuple[IommuGroup, ...]
    lines: tuple[int, ...]
    cut: bool


def parse(text: str) -> Groups | None:
    """Every group of the text with at least one device; None when there is none."""
    if "roup" not in text and not _ANY_PAIR.search(text):
        return None
    members = list(_json_members(text)) or list(_kernel_log_members(text)) or list(_members(text.splitlines()))
    if not members:
        return None
    by_group: dict[int, dict[str, str]] = {}
    for group, address, name, _ in members:
        names = by_group.setdefault(group, {})
        names[address] = names.get(address) or name
    groups = tuple(_group(number, names) for number, names in sorted(by_group.items()))
    used = tuple(dict.fromkeys(member.line for member in members))
    return Groups(groups, used, _is_cut(text))


def _json_members(text: str) -> Iterator[_Member]:
    """`pvesh get /nodes/NODE/hardware/pci --output-format json`; -1 is no group."""
    if '"iommugroup"' not in text:
        return
    for number, _, value in pvesh.objects(text):
        group, address = value.get("iommugroup"), str(value.get("id"))
        if isinstance(group, int) and group >= 0 and _BDF.fullmatch(address):
            name = value.get("device_name")
            yield _Member(group, full_address(address), str(name or ""), number)


def _kernel_log_members(text: str) -> Iterator[_Member]:
    """The kernel's own list (drivers/iommu/iommu.c)."""
    for number, line in lines_with(text, ("Adding to iommu group ",)):
        if added := _ADDED.search(line[:LINE_CAP]):
            yield _Member(int(added[2]), full_address(added[1]), "", number)


def _is_cut(text: str) -> bool:
    return any(_CUT.match(line[:80]) for _, line in lines_with(text, ("...", "…", "--")))


def _group(number: int, names: dict[str, str]) -> IommuGroup:
    devices = tuple(sorted(names))
    device_names = tuple(names[device] for device in devices)
    return IommuGroup(number, devices, device_names if any(device_names) else ())


@dataclass(slots=True)
class _Above:
    """The state from the lines above. group: of the header. device: the one whose attributes follow."""

    group: int | None = None
    device: str | None = None
    columns: list[str] = field(default_factory=list)


def _members(lines: list[str]) -> Iterator[_Member]:
    above = _Above()
    for number, raw in enumerate(lines, 1):
        line = raw[:LINE_CAP]
        plain = _PLAIN.match(line) if above.group is not None else None
        if plain and "roup" not in line:
            member: _Member | None = _named_member(above.group or 0, plain[1], plain[2], number)
        elif (bare := _BARE_HEADER.match(line)) and not line[0].isspace():
            above.group, above.device, member = int(bare[1]), None, None
        elif "│" in line:
            member = _table_row(line, above, number)
        else:
            member = _one_line_member(line, number)
            if member and "/" not in line:
                above.group = member.group
            member = member or _member_below(line, above, number)
        if member:
            yield member


def _one_line_member(line: str, number: int) -> _Member | None:
    """A line that names both a group and a device."""
    address = _address(line)
    if address is None:
        return None
    sysfs, header, _ = _naming_group(line)
    pair = _PAIR.match(line)
    if sysfs and sysfs[2] and (inner := _BDF.fullmatch(sysfs[2])):
        return _Member(int(sysfs[1]), full_address(inner[0]), "", number)
    if named := header or pair:
        return _member(int(named[1]), line, address, number)
    own = _OWN.search(line)
    return _Member(int(own[1]), full_address(address[0]), "", number) if own else None


def _member_below(line: str, above: _Above, number: int) -> _Member | None:
    """A header, a device under one, or a line about the device above it."""
    sysfs, header, own = _naming_group(line)
    address = _address(line)
    if sysfs and not sysfs[2]:
        above.group, above.device = int(sysfs[1]), None
    elif above.device and own and line[:1].isspace():
        return _Member(int(own[1]), above.device, "", number)
    elif header:
        above.group, above.device = int(header[1]), None
    elif address and above.group is not None and _is_member(line, address):
        return _member(above.group, line, address, number)
    elif address and above.group is None and not line[:1].isspace():
        above.device = full_address(address[0])
    elif line.strip() and not line[0].isspace() and not address and "total " not in line:
        above.group = None
    return None


_Match = re.Match[str] | None


def _address(line: str) -> _Match:
    return _BDF.search(line) if ":" in line and "." in line else None


def _naming_group(line: str) -> tuple[_Match, _Match, _Match]:
    """The match of a line that names a group: a path in sysfs, a header, an attribute. Most lines name none."""
    if "group" not in line.lower():
        return None, None, None
    return _SYSFS.search(line), _HEADER.match(line), _OWN.search(line)


def _is_member(line: str, address: re.Match[str]) -> bool:
    """Whether this is a device's own line: only list marks before its address, or a link in `ls -l`."""
    before = line[: address.start()].strip()
    return not re.search(r"\w{3}", before) or before.startswith(("l", "["))


def _member(group: int, line: str, address: re.Match[str], number: int) -> _Member:
    return _named_member(group, address[0], line[address.end() :], number)


def _named_member(group: int, address: str, after: str, number: int) -> _Member:
    name = after.strip()
    return _Member(group, full_address(address), "" if name.startswith("->") else name, number)


def _table_row(line: str, above: _Above, number: int) -> _Member | None:
    """One row of `pvesh get /nodes/NODE/hardware/pci`: a header names the columns, then a device."""
    cells = [cell.strip() for cell in line.strip().strip("│").split("│")]
    if "iommugroup" in cells and "id" in cells:
        above.columns = cells
    row = dict(zip(above.columns, cells, strict=False))
    if not _BDF.fullmatch(row.get("id", "")) or not re.fullmatch(r"\d{1,6}", row.get("iommugroup", "")):
        return None
    name = row.get("device_name", "")
    return _Member(int(row["iommugroup"]), full_address(row["id"]), name, number)
