"""Proxmox VM configurations: raw `.conf` files, `qm config`, `qm pending`, `qm list`, and parts of them.

Format: Proxmox qemu-server, qm.conf(5): `key: value` lines, `#` lines are the description, sections
`[snapshot]`, `[PENDING]` and `[special:…]` follow the current one. `qm config` prints no sections and
shows pending values as if applied; `qm pending` prefixes `cur`, `new` or `del` (GuestHelpers.pm).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.facts.vm import HostPci, Vm
from agents.parsing import pvesh

LINE_CAP = 16_384

_PREFIX = re.compile(r"^\s{0,16}(?:>\s?){0,3}(?:\d{1,5}[:-]\s{0,8}(?=[a-z#\[]))?\s{0,16}")
_PROMPT = r"(?:^|[#$%>]\s*)(?:sudo\s+(?:-\S+\s+)*)?"
_FILE = re.compile(r"^(?:#{2,}|==>|(?:\S*[#$]\s+)?cat)\s.*?/qemu-server/(\d{1,9})\.conf")
_TYPED = re.compile(_PROMPT + r"qm\s+(config|pending|list|status)\b\s*(\d{1,9})?")
_PVESH = re.compile(r"\bpvesh\s+get\s+\S{0,80}/qemu/(\d{1,9})/(?:config|pending)\b")
_NAMED = re.compile(r"^(?:#+\s*)?VM(?:ID)?[ :#]+(\d{1,9})\b")
_KEY = re.compile(r"^(?:(cur|new|del)!?\s+)?([a-z][a-z0-9_-]{1,40})(?::(?:\s+(.*))?)?$")
_SECTION = re.compile(r"^\[([^\]]{1,200})\]\s*$")
_CUT = re.compile(r"^(?:\.{3,}|…|\[\.\.\.\]|-+ ?more ?-+|\(END\)|:)\s*$", re.IGNORECASE)
_COMMENT = re.compile(r"\s+#.*$")
_LIST_ROW = re.compile(r"^\s*(\d{1,9})\s+(\S+)\s+(running|stopped|paused|suspended|prelaunch)\s+(\d+)\s+[\d.]+(?:\s|$)")
_BDF = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[01][0-9a-f](?:\.[0-7])?)$", re.IGNORECASE)
_UUID = re.compile(r"(?:^|,)uuid=([0-9a-fA-F-]{36})(?:,|$)")

# qm.conf(5), qemu-server 9; numbered keys by their stem.
_KEYS = """
    acpi affinity agent allow-ksm amd-sev arch args audio autostart balloon bios boot bootdisk cdrom
    cicustom citype ciupgrade ciuser cores cpu cpulimit cpuunits description efidisk freeze hookscript
    hostpci hotplug hugepages ide intel-tdx ipconfig ivshmem keephugepages keyboard kvm localtime lock
    machine memory meta migrate_downtime migrate_speed name nameserver net numa onboot ostype parallel
    parent protection reboot rng sata scsi scsihw searchdomain serial shares smbios smp snaptime sockets
    spice_enhancements startdate startup tablet tags tdf template tpmstate unused usb vcpus vga virtio
    virtiofs vmgenid vmstate vmstatestorage watchdog delete
"""
_KNOWN = frozenset(_KEYS.split())
_SECRET = frozenset(("cipassword", "sshkeys", "digest"))
# Keys that Proxmox itself writes and that people do not select by hand.
_BOILERPLATE = frozenset(("smbios1", "vmgenid", "scsihw", "meta"))


@dataclass(slots=True)
class _Draft:
    """One configuration during parsing. section: "" for the current one, "PENDING", or a snapshot's name.

    whole: read from its file under a header with the file's name. cut: filtered or elided.
    """

    id: int | None = None
    whole: bool = False
    cut: bool = False
    section: str = ""
    config: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Row:
    name: str | None
    running: bool
    memory_mib: int
    line: int


def parse(text: str) -> tuple[Vm, ...]:
    """Every VM of the text, in order; empty when no line is a VM's."""
    drafts: list[_Draft] = []
    rows: dict[int, _Row] = {}
    for number, raw in pvesh.lines(text):
        line = raw[:LINE_CAP]
        row = _LIST_ROW.match(line)
        if row:
            name = None if row[2] == "-" else row[2]
            rows[int(row[1])] = _Row(name, row[3] == "running", int(row[4]), number)
        elif not _opens_configuration(drafts, line):
            _take_line(drafts, line, number)
    configured_vms = [_vm(draft, rows) for draft in drafts if draft.config or draft.pending]
    configured = {vm.id for vm in configured_vms}
    listed = [_listed_vm(id_, row) for id_, row in rows.items() if id_ not in configured]
    return (*configured_vms, *listed)


def hostpci(slot: int, value: str) -> HostPci | None:
    """One `hostpciN:` value; None when it names neither an address nor a mapping.

    Addresses are full and in lower case; an address without a function ("0000:01:00") means all functions (Proxmox
    qemu-server, PCI.pm).
    """
    words = [word.strip() for word in value.split(",")]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    named = options.get("host") or next((word for word in words if "=" not in word), "")
    addresses = tuple(a for part in named.split(";") if (a := _address(part)))
    mapping = options.get("mapping")
    if not addresses and not mapping:
        return None
    flags = {key: _flag(options.get(key)) for key in ("pcie", "x-vga", "rombar", "multifunction")}
    return HostPci(
        slot,
        addresses,
        mapping,
        flags["pcie"],
        flags["x-vga"],
        flags["rombar"],
        options.get("romfile"),
        flags["multifunction"],
    )


def _address(text: str) -> str | None:
    match = _BDF.match(text.strip())
    return f"{(match[1] or '0000').lower()}:{match[2].lower()}" if match else None


def _flag(value: str | None) -> bool | None:
    return {"1": True, "on": True, "yes": True, "true": True}.get(value, False) if value else None


def _opens_configuration(drafts: list[_Draft], line: str) -> bool:
    """Whether the line is a header, or a typed command, that starts another configuration."""
    if match := _FILE.match(line.strip()):
        drafts.append(_Draft(int(match[1]), whole="grep" not in line))
        return True
    if match := _PVESH.search(line):
        drafts.append(_Draft(int(match[1])))
        return True
    if match := _TYPED.search(line):
        if match[1] in ("config", "pending"):
            cut = bool(re.search(r"\|\s*(?:e?grep|rg|head|tail|awk|sed)\b", line))
            drafts.append(_Draft(int(match[2]) if match[2] else None, cut=cut))
        return True
    if match := _NAMED.match(line.strip()):
        drafts.append(_Draft(int(match[1])))
        return True
    return False


def _take_line(drafts: list[_Draft], line: str, number: int) -> None:
    """Adds one line to the configuration at hand."""
    text = _PREFIX.sub("", line, count=1).rstrip()
    if not text or text.startswith("#"):
        return
    section = _SECTION.match(text)
    if section and drafts:
        drafts[-1].section = section[1]
        return
    if _CUT.match(text) and drafts:
        drafts[-1].cut = True
        return
    match = _KEY.match(text)
    if not match or (match[3] is None and match[1] != "del") or not _is_key(match[2]):
        return
    if not drafts:
        drafts.append(_Draft())
    _store_value(drafts, match[1] or "", match[2], _value(match[2], match[3] or ""), number)


def _store_value(drafts: list[_Draft], prefix: str, key: str, value: str, number: int) -> None:
    draft = drafts[-1]
    if prefix == "new" or draft.section.upper() == "PENDING":
        if key == "delete":
            draft.deleted += [k for k in re.split(r"[,; ]+", value) if k]
        else:
            draft.pending[key] = value
        return
    if draft.section:
        return
    if prefix == "del":
        draft.deleted.append(key)
    if prefix == "" and key in draft.config and not draft.whole:
        # Within one file Proxmox takes the last value; in loose text another configuration begins.
        draft = _Draft()
        drafts.append(draft)
    if value or prefix != "del":
        draft.config[key] = value
        draft.lines[key] = number


def _is_key(key: str) -> bool:
    return key not in _SECRET and (key in _KNOWN or key.rstrip("0123456789") in _KNOWN)


def _value(key: str, value: str) -> str:
    """The value without a trailing `# comment`: Proxmox does not accept one, but people add them."""
    return value.strip() if key == "description" else _COMMENT.sub("", f" {value}").strip()


def _vm(draft: _Draft, rows: dict[int, _Row]) -> Vm:
    config = draft.config
    row = rows.get(draft.id) if draft.id is not None else None
    uuid = _UUID.search(config.get("smbios1", ""))
    pending = dict(draft.pending)
    if draft.deleted:
        pending["delete"] = ",".join(dict.fromkeys(draft.deleted))
    return Vm(
        id=draft.id,
        name=config.get("name") or (row.name if row else None),
        uuid=uuid[1].lower() if uuid else None,
        machine=config.get("machine"),
        hostpci=_devices(config.items()),
        args=config.get("args"),
        cpu=config.get("cpu"),
        bios=config.get("bios"),
        numa=_flag(config.get("numa")),
        hugepages=config.get("hugepages"),
        memory_mib=_memory(config.get("memory")),
        running=row.running if row else None,
        config=config,
        pending=pending,
        key_lines=draft.lines,
        filtered=_is_filtered(draft),
    )


def _is_filtered(draft: _Draft) -> bool:
    """Whether an absent key proves nothing: the text is cut, filtered, or no whole configuration.

    A whole one has `memory`, some keys that Proxmox always writes, and a few more.
    """
    keys = set(draft.config)
    looks_whole = "memory" in keys and bool(keys & _BOILERPLATE) and len(keys) >= 6
    return draft.cut or not (looks_whole or (draft.whole and "memory" in keys))


def _devices(items: Iterable[tuple[str, str]]) -> tuple[HostPci, ...]:
    numbered = ((int(key[7:]), value) for key, value in items if re.fullmatch(r"hostpci\d{1,2}", key))
    devices = (hostpci(slot, value) for slot, value in sorted(numbered))
    return tuple(device for device in devices if device is not None)


def _memory(value: str | None) -> int | None:
    """`memory: 4096` or `memory: current=4096`, in MiB."""
    digits = re.fullmatch(r"(?:current=)?(\d{1,12})", value or "")
    return int(digits[1]) if digits else None


def _listed_vm(id_: int, row: _Row) -> Vm:
    return Vm(
        id=id_, name=row.name, memory_mib=row.memory_mib, running=row.running, key_lines={"id": row.line}, filtered=True
    )
