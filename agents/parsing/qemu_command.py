"""QEMU command lines: of running processes, of `qm showcmd`, of libvirt's logs, and parts of them.

Options: QEMU's qemu-options and hw/vfio/pci.c: `-device vfio-pci,key=value…` or `-device '{json}'`,
`-set device.ID.PROPERTY=VALUE`, `-global vfio-pci.PROPERTY=VALUE`, `-object iommufd,id=…`. Proxmox
starts QEMU as `/usr/bin/kvm -id VMID`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from agents.facts.vm import QemuCommand, QemuDevice

LINE_CAP = 262_144
TEXT_CAP = 32_768

CLIQUE = "x-nv-gpudirect-clique"

_HEADER = re.compile(r"^#{2,}\s.{0,60}/proc/\d{1,10}/cmdline")
_PREFIX = re.compile(r"^(?:\s{0,16}>\s?)*(?:\s{0,8}\d{1,5}[:-](?=\s*[-/'\w]))?\s*")
_BINARY = re.compile(r"(?<!-accel)(?:^|\s)(?:\S{0,200}/)?(?:kvm|qemu-kvm|qemu-system-[\w-]{1,40})(?=\s|$)")
_OPTION = re.compile(r"^['\"]?-{1,2}[a-zM][\w-]{0,40}['\"]?(?=\s|$)")
_TYPED_SHOWCMD = re.compile(r"\bqm\s+showcmd\s+(\d{1,9})")
_TYPED_RUNNING = re.compile(r"/proc/\S{1,80}/cmdline|[#$]\s*(?:sudo\s+)?(?:ps|pgrep)\s")
_PS = re.compile(r"^\S{1,40}\s+\d{1,10}\s|^\d{1,10}\s")
_TYPE_1 = re.compile(r"(?:^|,)type=1(?:,|$)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SET = re.compile(rf"^device\.(.+)\.{CLIQUE}=(0x[0-9a-fA-F]+|\d+)$")
_GLOBAL = re.compile(rf"^vfio-pci\.{CLIQUE}=(0x[0-9a-fA-F]{{1,8}}|\d{{1,8}})$")
_PIDFILE = re.compile(r"/qemu-server/(\d{1,9})\.pid$")
_BDF = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])$", re.IGNORECASE)
_SECRET = re.compile(
    r"((?:^|[,:{\"])(?:password|passwd|passphrase|secret|data|key|string|value)\"?[=:]\s?\"?)"
    r"[^,\"}\s]+",
    re.IGNORECASE,
)
# A line of options without one of these belongs to another tool.
_TELLING = frozenset(("-device", "-object", "-machine", "-M", "-cpu", "-global", "-set", "-smbios"))
# Options whose value may carry a secret in some key.
_MAY_HOLD_SECRETS = frozenset(("-object", "-fw_cfg", "-smbios", "-vnc", "-spice", "-drive"))
_MAY_HOLD_SECRETS |= {"-blockdev", "-iscsi", "-cdrom"}


@dataclass(frozen=True, slots=True)
class LocatedCommand:
    """A command line and its 1-based lines."""

    command: QemuCommand
    lines: tuple[int, ...]


@dataclass(slots=True)
class _Draft:
    """words_by_line: every line is one argument, as `tr '\\0' '\\n'` prints /proc/PID/cmdline."""

    running: bool
    words_by_line: bool = False
    vm_id: int | None = None
    pieces: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    open: bool = True


def parse(text: str) -> tuple[LocatedCommand, ...]:
    """Every command line in the text, in order, also parts without the program's name."""
    drafts: list[_Draft] = []
    typed_running, typed_vm = False, None
    for number, raw in enumerate(text.splitlines(), 1):
        line = _PREFIX.sub("", raw[:LINE_CAP], count=1).rstrip()
        showcmd = _TYPED_SHOWCMD.search(line[:400])
        if _HEADER.match(raw):
            drafts.append(_Draft(running=True, words_by_line=True))
        elif showcmd:
            typed_running, typed_vm = False, int(showcmd[1])
            _close_draft(drafts)
        elif _TYPED_RUNNING.search(line[:400]) and not _BINARY.match(line):
            typed_running, typed_vm = True, None
            _close_draft(drafts)
        else:
            _take_line(drafts, line, number, typed_running, typed_vm)
    commands = (_read_draft(draft) for draft in drafts if draft.pieces)
    return tuple(item for item in commands if item is not None)


def split(line: str) -> tuple[str, ...]:
    """The words of a command line as a shell sees them. It never fails and takes linear time.

    Quotes count at the start of a word or after a closing quote. A word that starts with `{` is JSON with its own
    quotes. A quote that never closes is an ordinary character.
    """
    words: list[str] = []
    parts: list[str] | None = None
    at, unclosed = 0, set[str]()
    while at < len(line):
        char = line[at]
        if char.isspace():
            words += ["".join(parts)] if parts is not None else []
            parts, at = None, at + 1
        elif char in "'\"" and char not in unclosed and (parts is None or line[at - 1] in "'\"\\="):
            end = line.find(char, at + 1)
            if end < 0:
                unclosed.add(char)
                continue
            parts, at = _with_part(parts, line[at + 1 : end]), end + 1
        elif char == "\\" and at + 1 < len(line):
            parts, at = _with_part(parts, line[at + 1]), at + 2
        else:
            end = _run_end(line, at, json_word=parts is None and char == "{")
            parts, at = _with_part(parts, line[at:end]), end
    return (*words, "".join(parts)) if parts is not None else tuple(words)


_PLAIN_END = re.compile(r"[\s'\"\\]")
_JSON_END = re.compile(r"\s")


def _with_part(parts: list[str] | None, more: str) -> list[str]:
    """The word's parts and one more; None: no word yet."""
    if parts is None:
        return [more]
    parts.append(more)
    return parts


def _run_end(line: str, at: int, *, json_word: bool) -> int:
    end = (_JSON_END if json_word else _PLAIN_END).search(line, at + 1)
    return end.start() if end else len(line)


def _close_draft(drafts: list[_Draft]) -> None:
    if drafts:
        drafts[-1].open = False


def _take_line(drafts: list[_Draft], line: str, number: int, typed_running: bool, typed_vm: int | None) -> None:
    current = drafts[-1] if drafts and drafts[-1].open else None
    if current and current.words_by_line:
        _take_word(drafts, current, line, number)
        return
    binary = _BINARY.search(line)
    if binary and (rest := line[binary.end() :].strip(" \\")) == "" and "\\" not in line:
        _append_line(_start_draft(drafts, True, typed_vm, True), line, number)
    elif binary and _OPTION.match(rest or "-x"):
        running = typed_running or _looks_running(line, binary.start())
        _append_line(_start_draft(drafts, running, typed_vm, False), line[binary.start() :], number)
    elif current and (_OPTION.match(line) or current.pieces[-1].endswith("\\")):
        _append_line(current, line, number)
    elif _OPTION.match(line):
        _append_line(_start_draft(drafts, typed_running, typed_vm, False), line, number)
    else:
        _close_draft(drafts)


def _take_word(drafts: list[_Draft], current: _Draft, line: str, number: int) -> None:
    """Takes one argument per line; an empty line, a comment or a program's name ends the command."""
    named = current.pieces and _BINARY.fullmatch(line) and not _OPTION.match(current.pieces[-1])
    if not line or line.startswith("#") or named:
        current.open = False
    if named:
        current = _start_draft(drafts, True, None, True)
    if current.open:
        _append_line(current, line, number)


def _start_draft(drafts: list[_Draft], running: bool, vm_id: int | None, words_by_line: bool) -> _Draft:
    drafts.append(_Draft(running, words_by_line, vm_id))
    return drafts[-1]


def _append_line(draft: _Draft, line: str, number: int) -> None:
    draft.pieces.append(line)
    draft.lines.append(number)


def _looks_running(line: str, binary_at: int) -> bool:
    """Whether the process runs: a row of `ps` names a process, and an unquoted line with a pidfile comes from a
    manager."""
    if line.rstrip().endswith("\\") or " '" in line:
        return False
    return bool(_PS.match(line[:binary_at])) or " -pidfile " in line


def _read_draft(draft: _Draft) -> LocatedCommand | None:
    if draft.words_by_line:
        words: tuple[str, ...] = tuple(draft.pieces)
    else:
        words = split(" ".join(piece.removesuffix("\\") for piece in draft.pieces))
    command = _command(words, draft)
    return LocatedCommand(command, tuple(draft.lines)) if command else None


def _command(words: Sequence[str], draft: _Draft) -> QemuCommand | None:
    options = _options(words)
    if not any(option in _TELLING and value for option, value in options):
        return None
    values: dict[str, str] = {}
    for option, value in options:
        values.setdefault(option, value)
    devices, global_clique = _cliques(options, list(_devices(options)))
    return QemuCommand(
        vm_id=_vm_id(values, draft.vm_id),
        running=draft.running,
        machine=values.get("-machine", values.get("-M")) or _machine_by_ports(devices),
        uuid=_uuid(options),
        cpu=values.get("-cpu"),
        devices=tuple(devices),
        global_clique=global_clique,
        text=_masked_text(words, options)[:TEXT_CAP],
    )


def _options(words: Sequence[str]) -> list[tuple[str, str]]:
    """Every option with its value; "" for one without."""
    options = []
    for word, following in pairwise((*words, "-")):
        if _OPTION.match(word):
            option = word[1:] if word.startswith("--") else word
            options.append((option, "" if following.startswith("-") else following))
    return options


def _machine_by_ports(devices: Sequence[QemuDevice]) -> str | None:
    """The machine of a part without -machine: Proxmox uses these ports on q35 only (qemu-server, PCI.pm,
    get_pci_addr_map)."""
    return "q35" if any((d.bus or "").startswith("ich9-pcie-port-") for d in devices) else None


def _vm_id(values: dict[str, str], typed: int | None) -> int | None:
    named = values.get("-id", "")
    if re.fullmatch(r"\d{1,9}", named):
        return int(named)
    pidfile = _PIDFILE.search(values.get("-pidfile", ""))
    return int(pidfile[1]) if pidfile else typed


def _uuid(options: Sequence[tuple[str, str]]) -> str | None:
    for option, value in options:
        if option == "-uuid" or (option == "-smbios" and _TYPE_1.search(value)):
            match = _UUID.search(value)
            if match:
                return match[0].lower()
    return None


def _devices(options: Sequence[tuple[str, str]]) -> Iterator[QemuDevice]:
    for option, value in options:
        if option != "-device":
            continue
        fields = _fields(value)
        if not str(fields.get("driver", "")).startswith("vfio-pci"):
            continue
        host = fields.get("host") or str(fields.get("sysfsdev", "")).rpartition("/")[2]
        yield QemuDevice(
            id=_text(fields.get("id")),
            host_address=_address(str(host)),
            bus=_text(fields.get("bus")),
            clique=_number(fields.get(CLIQUE)),
            iommufd=bool(fields.get("iommufd")),
        )


def _fields(value: str) -> dict[str, Any]:
    """The properties of a -device value, with its driver under "driver"."""
    if value.startswith("{"):
        try:
            properties = json.loads(value)
        except (ValueError, RecursionError):
            return {}
        return properties if isinstance(properties, dict) else {}
    head, *rest = value.split(",")
    pairs = dict(part.split("=", 1) for part in rest if "=" in part)
    return {"driver": head.removeprefix("driver="), **pairs}


def _cliques(options: Sequence[tuple[str, str]], devices: list[QemuDevice]) -> tuple[list[QemuDevice], int | None]:
    """The devices with their cliques from `-set`, and the clique from `-global` for all others."""
    by_id: dict[str, int | None] = {}
    global_clique = None
    for option, value in options:
        if option == "-set" and (match := _SET.match(value)):
            by_id[match[1]] = _number(match[2])
        elif option == "-global" and (match := _GLOBAL.match(value)):
            global_clique = int(match[1], 0)
    known = {device.id for device in devices}
    set_on = [replace(d, clique=by_id.get(d.id or "", d.clique)) for d in devices]
    alone = [QemuDevice(id_, None, clique=c) for id_, c in by_id.items() if id_ not in known]
    # A part of a command line may show `-set` without the -device it belongs to.
    return (set_on or alone, global_clique)


def _text(value: object) -> str | None:
    return str(value) if value is not None else None


def _number(value: object) -> int | None:
    text = str(value)
    return int(text, 0) if re.fullmatch(r"0[xX][0-9a-fA-F]{1,8}|0|[1-9]\d{0,8}", text) else None


def _address(text: str) -> str | None:
    match = _BDF.match(text)
    return f"{match[1] or '0000'}:{match[2]}".lower() if match else None


def _masked_text(words: Sequence[str], options: Sequence[tuple[str, str]]) -> str:
    secret = {value for option, value in options if option in _MAY_HOLD_SECRETS}
    return " ".join(_SECRET.sub(r"\1***", w) if w in secret else w for w in words)
