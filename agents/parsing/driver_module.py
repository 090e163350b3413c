"""The NVIDIA kernel module: /proc/driver/nvidia/version and params, modinfo(8), dkms(8), lsmod(8).

The version line says "NVIDIA UNIX Open Kernel Module for x86_64  580.95.05" or "NVIDIA UNIX x86_64 Kernel
Module  550.54.15"; modinfo's licence is "Dual MIT/GPL" for the open modules and "NVIDIA" for the others
(NVIDIA open kernel modules 580, kernel-open/nvidia/nv.c, nv-procfs.c). dkms prints "nvidia/580.95.05,
6.8.0-87-generic, x86_64: installed", before 3.0 "nvidia, 580.95.05, …".
"""

import re

from agents.facts.gpu import DriverModule, DriverParams
from agents.parsing import modprobe
from agents.parsing.nonblank_lines import nonblank_lines

_LINE_CAP = 2000
_QUOTE = re.compile(r"^\s{0,8}(?:[>|]\s?)*")
_NVRM = re.compile(r"NVRM version: (?P<text>.{0,120}?)\s(?P<version>\d{3}\.\d{1,3}(?:\.\d{1,3})?)\s")
_FIELD = re.compile(r"^(?P<name>version|license|filename):\s+(?P<value>\S.{0,300})$")
_VERSION = re.compile(r"\d{3}\.\d{1,3}(?:\.\d{1,3})?")
_DKMS = re.compile(r"^nvidia[\w-]{0,30}(?:/|, ?)\d{3}\.[\d.]{2,9}, .{1,120}: [a-z]+\b.{0,80}$")
_LOADED = re.compile(r"^(?P<name>nvidia(?:_\w{1,20})?|gdrdrv|nv_peer_mem|nouveau)\s+\d+\s+\d+")
_LSMOD = re.compile(r"^Module\s+Size\s+Used by")
_OPEN = {"Dual MIT/GPL": True, "NVIDIA": False}
_PARAM = re.compile(r"^[\s>|]*(?P<name>[A-Z][A-Za-z0-9]{2,60}): (?P<value>-?\d{1,20}|\"[^\"]{0,4000}\")\s*$")

Found = tuple[DriverModule, tuple[int, ...]]


def parse(text: str) -> Found | None:
    """None when no line is about the module."""
    version: str | None = None
    is_open: bool | None = None
    dkms: list[str] = []
    loaded: list[str] = []
    lines: list[int] = []
    listed = False
    for number, raw in nonblank_lines(text):
        line = _QUOTE.sub("", raw[:_LINE_CAP], count=1).rstrip()
        nvrm, field = _NVRM.search(f"{line} "), _FIELD.match(line)
        if nvrm:
            version, is_open = nvrm["version"], "Open Kernel Module" in nvrm["text"]
        elif field and (detail := _modinfo(field)) is not None:
            version = detail if isinstance(detail, str) else version
            is_open = detail if isinstance(detail, bool) else is_open
        elif _DKMS.match(line):
            dkms.append(line)
        elif module := _LOADED.match(line):
            loaded.append(module["name"])
            listed = True
        elif _LSMOD.match(line):
            listed = True
        else:
            continue
        lines.append(number)
    if not lines:
        return None
    return DriverModule(version, is_open, tuple(dkms), tuple(loaded) if listed else None), tuple(lines)


def _modinfo(field: re.Match[str]) -> str | bool | None:
    """The version, or whether the licence is that of the open modules, or None for other fields."""
    if field["name"] == "version":
        match = _VERSION.fullmatch(field["value"].strip())
        return match[0] if match else None
    return _OPEN.get(field["value"].strip()) if field["name"] == "license" else None


def params(text: str) -> tuple[DriverParams, tuple[int, ...]] | None:
    """/proc/driver/nvidia/params, `Name: value` lines; None when there is none."""
    values: dict[str, str] = {}
    lines: list[int] = []
    for number, raw in nonblank_lines(text):
        if match := _PARAM.match(raw[: _LINE_CAP * 3]):
            values[match["name"]] = match["value"].strip('"')
            lines.append(number)
    if not values:
        return None
    return DriverParams(values, modprobe.registry(values.get("RegistryDwords", ""))), tuple(lines)
