"""libvirt domains: `virsh dumpxml`, fragments of it, and `virsh list`.

Format: libvirt's formatdomain.html. A passed-through device has two addresses; the one under <source> is the host's.
Pastes are often fragments with comments, so tags are read one by one, without an XML parser, which would also expand
hostile entities.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.facts.vm import HostPci, Vm

TAG_CAP = 4096

_ATTRIBUTE = re.compile(r"""([\w:-]{1,40})\s{0,4}=\s{0,4}(?:'([^']*)'|"([^"]*)")""")
_NAME = re.compile(r"(/?)([\w:-]{1,60})")
_LIST_ROW = re.compile(
    r"^\s{0,8}(-|\d{1,9})\s{1,20}(\S{1,100})\s{1,200}"
    r"(running|shut off|paused|idle|in shutdown|crashed|pmsuspended)\s*$"
)
_VALUES = frozenset(("name", "uuid", "type", "cpu", "loader", "memory", "hugepages", "cell", "domain", "hidden", "os"))
_UNITS_KIB = {"b": 1 / 1024, "bytes": 1 / 1024, "kib": 1.0, "k": 1.0, "mib": 1024.0, "m": 1024.0}
_UNITS_KIB |= {"gib": 1024.0**2, "g": 1024.0**2, "tib": 1024.0**3, "t": 1024.0**3}


@dataclass(frozen=True, slots=True)
class _Tag:
    """name: "/hostdev" for a closing tag. text: from the tag up to the next one."""

    name: str
    attributes: dict[str, str]
    text: str
    line: int


@dataclass(slots=True)
class _Draft:
    whole: bool = False
    running: bool | None = None
    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    devices: list[HostPci] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    hidden: bool = False
    alias: str = ""
    source: str | None = None
    rom_bar: bool | None = None
    in_hostdev: bool = False
    in_source: bool = False


def parse(text: str) -> tuple[Vm, ...]:
    """Every domain or fragment of one, then the rows of `virsh list` for other domains.

    hostpci: slot is the device's number among the PCI hostdevs, as in libvirt's alias "hostdev0". args: the QEMU
    arguments that <qemu:commandline> or <qemu:override> adds. cpu shows a hidden KVM signature as Proxmox does:
    "host-passthrough,hidden=1".
    """
    drafts: list[_Draft] = []
    for tag in _tags(text):
        if tag.name == "domain" or not drafts:
            drafts.append(_Draft(whole=tag.name == "domain"))
        _take_tag(drafts[-1], tag)
    domains = tuple(_vm(draft) for draft in drafts if draft.devices or draft.args or draft.values)
    return (*domains, *_rows(text, {vm.name for vm in domains}))


def iommufd(text: str) -> bool:
    """Whether a hostdev asks for the iommufd backend (`<driver iommufd='yes'/>`)."""
    return "iommufd" in text and any(t.name == "driver" and t.attributes.get("iommufd") == "yes" for t in _tags(text))


def _tags(text: str) -> Iterator[_Tag]:
    comment, line = False, 1 + text.partition("<")[0].count("\n")
    for piece in text.split("<")[1:]:
        comment = comment or piece.startswith("!--")
        if comment:
            comment = "-->" not in piece
        else:
            inner, _, behind = piece.partition(">")
            name = _NAME.match(inner)
            if name:
                pairs = _ATTRIBUTE.findall(inner[:TAG_CAP])
                attributes = {key: single or double for key, single, double in pairs}
                yield _Tag(name[1] + name[2], attributes, behind[:TAG_CAP].strip(), line)
        line += piece.count("\n")


def _take_tag(draft: _Draft, tag: _Tag) -> None:
    if tag.name == "hostdev":
        draft.in_hostdev = tag.attributes.get("type") == "pci"
        draft.source, draft.rom_bar, draft.in_source = None, None, False
        draft.lines.setdefault(f"hostpci{len(draft.devices)}", tag.line)
    elif tag.name == "/hostdev":
        _close_device(draft)
    elif draft.in_hostdev:
        _take_device(draft, tag)
    else:
        _take_value(draft, tag)
        _take_argument(draft, tag)


def _take_device(draft: _Draft, tag: _Tag) -> None:
    if tag.name in ("source", "/source"):
        draft.in_source = tag.name == "source"
    elif tag.name == "address" and draft.in_source and draft.source is None:
        draft.source = _address(tag.attributes)
    elif tag.name == "rom" and "bar" in tag.attributes:
        draft.rom_bar = tag.attributes["bar"] == "on"


def _close_device(draft: _Draft) -> None:
    if draft.in_hostdev and draft.source:
        slot = len(draft.devices)
        draft.devices.append(HostPci(slot, (draft.source,), rombar=draft.rom_bar))
    draft.in_hostdev = False


def _address(attributes: dict[str, str]) -> str | None:
    try:
        domain, bus, slot, function = (
            int(attributes.get(key, "0x0"), 0) for key in ("domain", "bus", "slot", "function")
        )
    except ValueError:
        return None
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}" if "bus" in attributes else None


def _take_value(draft: _Draft, tag: _Tag) -> None:
    """Takes elements whose first value counts: <name> and <uuid> of the domain come before its devices."""
    if tag.name not in _VALUES:
        return
    value = {
        "name": tag.text,
        "uuid": tag.text.lower(),
        "type": tag.attributes.get("machine", ""),
        "cpu": tag.attributes.get("mode", ""),
        "loader": tag.text,
        "memory": _mib(tag),
        "hugepages": "any",
        "os": tag.attributes.get("firmware", ""),
        "cell": tag.attributes.get("cpus", ""),
    }.get(tag.name, "")
    if value and tag.name not in draft.values:
        draft.values[tag.name] = value
        draft.lines[{"type": "machine", "uuid": "smbios1"}.get(tag.name, tag.name)] = tag.line
    if tag.name == "domain" and "type" in tag.attributes:
        draft.running = "id" in tag.attributes
        draft.lines["id"] = tag.line
    if tag.name == "hidden" and tag.attributes.get("state") == "on":
        draft.hidden = True


def _take_argument(draft: _Draft, tag: _Tag) -> None:
    attributes = tag.attributes
    if tag.name == "qemu:arg" and "value" in attributes:
        draft.args.append(attributes["value"])
    elif tag.name == "qemu:device":
        draft.alias = attributes.get("alias", "")
    elif tag.name == "qemu:property" and draft.alias:
        value = f"device.{draft.alias}.{attributes.get('name')}={attributes.get('value')}"
        draft.args += ["-set", value]
    else:
        return
    draft.lines.setdefault("args", tag.line)


def _mib(tag: _Tag) -> str:
    """<memory unit='KiB'>…</memory>; without a unit KiB."""
    factor = _UNITS_KIB.get(tag.attributes.get("unit", "KiB").lower())
    if factor is None or not re.fullmatch(r"\d{1,18}", tag.text):
        return ""
    return str(int(int(tag.text) * factor / 1024))


def _vm(draft: _Draft) -> Vm:
    values = draft.values
    cpu = values.get("cpu")
    return Vm(
        name=values.get("name"),
        uuid=values.get("uuid"),
        machine=values.get("type"),
        hostpci=tuple(draft.devices),
        args=shlex.join(draft.args) if draft.args else None,
        cpu=f"{cpu or 'default'},hidden=1" if draft.hidden else cpu,
        bios=_firmware(values, draft.whole),
        numa="cell" in values if draft.whole else None,
        hugepages=values.get("hugepages"),
        memory_mib=int(values["memory"]) if "memory" in values else None,
        running=draft.running,
        config=_config(draft),
        key_lines=draft.lines,
        filtered=not draft.whole or "type" not in values,
    )


def _firmware(values: dict[str, str], whole: bool) -> str | None:
    if "loader" in values:
        return "ovmf" if re.search(r"OVMF|edk2|AAVMF", values["loader"]) else values["loader"]
    if "os" in values:  # libvirt chooses the file itself
        return "ovmf" if values["os"] == "efi" else "seabios"
    return "seabios" if whole else None


def _config(draft: _Draft) -> dict[str, str]:
    devices = {f"hostpci{d.slot}": d.addresses[0] for d in draft.devices}
    key_names = {"type": "machine", "cpu": "cpu", "name": "name", "memory": "memory"}
    return {new: draft.values[old] for old, new in key_names.items() if old in draft.values} | devices


def _rows(text: str, described: set[str | None]) -> Iterator[Vm]:
    for number, line in enumerate(text.splitlines(), 1):
        row = _LIST_ROW.match(line[:400])
        if row and row[2] not in described:
            running = row[3] not in ("shut off", "crashed")
            yield Vm(name=row[2], running=running, key_lines={"id": number}, filtered=True)
