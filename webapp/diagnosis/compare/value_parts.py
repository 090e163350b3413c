"""A fact's value as named parts, so that two values can be compared part by part."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from agents.facts.p2p import P2pMatrix, TopologyMatrix
from agents.facts.vm import QemuCommand, Vm
from webapp.diagnosis.wording import called


@dataclass(frozen=True, slots=True)
class Part:
    """if_told: an output may leave the part out, so that its absence says nothing."""

    text: str
    if_told: bool = False


Parts = dict[str, Part]
# Fields that name an item of a list, in order of preference.
_KEYS = ("id", "index", "slot", "pci_address", "address", "gpu", "group", "name", "host_address")
# Fields that change from one reading to the next, or only locate the reading.
_RESTLESS = re.compile(
    r"utilisation_percent|memory_utilisation_percent|memory_used_mib|used_mib|power_w|sm_clock_mhz"
    r"|temperature_celsius|pcie_gen|pcie_width|pid|key_lines|line|text|running"
)
COMMAND_LINES = frozenset({"guest.kernel_cmdline", "host.kernel_cmdline"})


def value_parts(fact_id: str, value: Any) -> Parts:
    """Text by name; the one part of a plain value has the name ""."""
    if fact_id in COMMAND_LINES:
        return _parameters(value)
    return _parts_of_value(value)


def _parameters(line: str) -> Parts:
    """The words of a command line, without order; what is given twice counts together."""
    values_by_name: dict[str, list[str]] = {}
    for word in line.split():
        name, equals, value = word.partition("=")
        values_by_name.setdefault(name, []).append(value if equals else "set")
    return {name: Part(" ".join(values)) for name, values in values_by_name.items()}


def _parts_of_value(value: Any) -> Parts:
    if value is None:
        return {}
    if isinstance(value, P2pMatrix):
        return {f"{a} → {b}": Part(str(code)) for (a, b), code in value.pairs().items()}
    if isinstance(value, TopologyMatrix):
        return {f"{a} – {b}": Part(link) for (a, b), link in value.gpu_links().items() if a < b}
    if isinstance(value, Vm):
        return _parts_of_vm(value)
    if isinstance(value, QemuCommand):
        return _nested_parts("", {"machine": value.machine, "cpu": value.cpu, "devices": value.devices})
    if isinstance(value, Mapping):
        return _nested_parts("", value)
    if is_dataclass(value):
        attributes = {f.name: getattr(value, f.name) for f in fields(value)}
        parts = _nested_parts("", {k: v for k, v in attributes.items() if not _RESTLESS.fullmatch(k)})
        return {name: replace(part, if_told=True) for name, part in parts.items()}
    if isinstance(value, tuple | list):
        return _parts_of_list(value)
    return {"": Part(called(value))}


def _parts_of_vm(vm: Vm) -> Parts:
    """The keys of its configuration; a change that waits for the next start is named "pending"."""
    config = _nested_parts("", vm.config)
    return {**config, **{f"pending {name}": Part(text) for name, text in vm.pending.items()}}


def _nested_parts(prefix: str, values: Mapping[Any, Any]) -> Parts:
    parts: Parts = {}
    for name, value in values.items():
        for inner, part in _parts_of_value(value).items():
            parts[" ".join(filter(None, [prefix, str(name), inner]))] = part
    return parts


def _parts_of_list(items: Sequence[Any]) -> Parts:
    """An item's presence is a part by itself."""
    parts: Parts = {}
    for item in items:
        name = _item_name(item)
        parts[name or str(item)[:80]] = Part("there")
        if name:
            parts |= _nested_parts(name, {"": item})
    return parts


def _item_name(item: Any) -> str:
    """The name that tells an item from the others in its list; "" when it has none."""
    keyed = ((key, getattr(item, key, None)) for key in _KEYS)
    named = next((value for _, value in keyed if value not in (None, "")), None)
    if named is None or not is_dataclass(item):
        return ""
    kind = {"Gpu": "GPU ", "Vm": "VM ", "HostPci": "hostpci"}.get(type(item).__name__, "")
    return f"{kind}{named}"
