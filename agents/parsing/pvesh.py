"""Turns the output of `pvesh get` about VMs and devices into the lines of other tools.

pvesh(1), Proxmox VE 8 and 9: tables of box characters, --output-format json (one line, keys sorted) and
json-pretty. /nodes/NODE/qemu lists VMs, …/VMID/config holds one, …/VMID/pending a list of its keys.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_ROW = re.compile(r"^\s*│\s*([a-z][a-z0-9_-]{1,40})\s*│\s*(.*?)\s*│\s*$")
# These objects are flat.
_OBJECT = re.compile(r"\{[^{}]*\}")
_CAP = 2_000_000

Numbered = Iterator[tuple[int, str]]


def lines(text: str) -> Numbered:
    """(1-based number, line); a table's row and an object's keys as "key: value"."""
    inside: set[int] = set()
    expanded = list(_expanded_objects(text)) if "{" in text[:_CAP] and '"' in text[:_CAP] else []
    for first, last, _ in expanded:
        inside |= set(range(first, last + 1))
    by_line: dict[int, list[str]] = {}
    for first, _, pairs in expanded:
        by_line.setdefault(first, []).extend(pairs)
    for number, raw in enumerate(text.splitlines(), 1):
        for line in by_line.get(number, ()):
            yield number, line
        if number not in inside:
            row = _ROW.match(raw[:4000]) if "│" in raw else None
            yield number, f"{row[1]}: {row[2]}" if row and row[1] != "key" else raw


def objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(first line, last line, object) of every valid flat object."""
    number = counted = 0
    for match in _OBJECT.finditer(text[:_CAP]):
        number += text.count("\n", counted, match.start())
        counted = match.start()
        try:
            value = json.loads(match[0])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield number + 1, number + 1 + match[0].count("\n"), value


def _expanded_objects(text: str) -> Iterator[tuple[int, int, list[str]]]:
    for first, last, value in objects(text):
        if pairs := _key_values(value):
            yield first, last, pairs


def _key_values(value: Mapping[str, Any]) -> list[str]:
    if "vmid" in value and "status" in value:
        mib = int(value["maxmem"]) // 2**20 if isinstance(value.get("maxmem"), int) else 0
        return [f"{value['vmid']} {value.get('name', '-')} {value['status']} {mib} 0.00"]
    if "key" in value and value.keys() <= {"key", "value", "pending", "delete"}:
        return _pending(value)
    if not value.keys() & {"memory", "machine", "cpu", "smbios1", "hostpci0", "cores"}:
        return []
    return [f"{key}: {text}" for key, text in value.items() if isinstance(text, str | int)]


def _pending(value: Mapping[str, Any]) -> list[str]:
    pairs = [f"cur {value['key']}: {value['value']}"] if "value" in value else []
    if "pending" in value:
        pairs.append(f"new {value['key']}: {value['pending']}")
    return pairs + ([f"del {value['key']}:"] if value.get("delete") else [])
