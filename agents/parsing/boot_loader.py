"""Which boot loader started the host: `proxmox-boot-tool status`, `efibootmgr -v`, `bootctl status`.

UEFI does not mean systemd-boot: Proxmox with Secure Boot, or without ZFS, boots GRUB in UEFI mode
(Proxmox admin guide, sysboot). Our own output adds `firmware: uefi` or `firmware: bios`, `grub:
/etc/default/grub` where that file is, and `loader info: …` as the loader itself left it for the system
(EFI variable LoaderInfo, systemd Boot Loader Interface).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agents.facts.host import BootLoader
from agents.parsing.nonblank_lines import nonblank_lines

_FIRMWARE = re.compile(r"^(?:System currently booted with (uefi|legacy bios)|firmware: (uefi|bios))", re.IGNORECASE)
_NO_VARIABLES = "EFI variables are not supported"
_ESP = re.compile(r"^[0-9A-F-]{4,40} is configured with: (.{1,400})$")
_CURRENT = re.compile(r"^BootCurrent: ([0-9A-F]{4})\b")
_ENTRY = re.compile(r"^Boot([0-9A-F]{4})\*? (.{1,2000})$")
_PRODUCT = re.compile(r"^(?:Product|loader info): (systemd-boot|GRUB)\b")
_UNMANAGED = re.compile(r"proxmox-boot-uuids does not exist|not (?:been )?configured|no ESP")
_GRUB_FILE = re.compile(r"grub: /etc/default/grub$|grub(?:x64|aa64)\.efi|shim(?:x64|aa64)\.efi", re.I)
_SYSTEMD_FILE = re.compile(r"systemd-boot(?:x64|aa64)\.efi|Linux Boot Manager", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Boot:
    """loader UNKNOWN: the text does not decide it. uefi None: unknown.

    managed: whether proxmox-boot-tool manages the boot partitions; None: unknown. esps: their number. errors: lines
    about unreadable boot partitions.
    """

    loader: BootLoader
    uefi: bool | None
    managed: bool | None
    esps: int
    errors: tuple[str, ...]
    lines: tuple[int, ...]


@dataclass(slots=True)
class _Signs:
    uefi: bool | None = None
    managed: bool | None = None
    current: str | None = None
    grub_config: bool = False
    product: str | None = None


def parse(text: str) -> Boot | None:
    """The boot loader; None when no line is about booting."""
    signs = _Signs()
    entries: dict[str, str] = {}
    kinds: list[str] = []
    errors: list[str] = []
    lines: list[int] = []
    for number, line in _unquoted_lines(text):
        esp, entry = _ESP.match(line), _ENTRY.match(line)
        if esp:
            kinds.append(esp[1])
        elif entry:
            entries[entry[1]] = entry[2]
        elif "espmounts" in line or re.match(r"mount of /dev/\S+ failed", line):
            errors.append(line)
        elif not _note_sign(signs, line):
            continue
        lines.append(number)
    if not lines:
        return None
    signs.managed = True if kinds else signs.managed
    loader = _loader(signs, entries, kinds)
    return Boot(loader, signs.uefi, signs.managed, len(kinds), tuple(errors), tuple(lines))


def _note_sign(signs: _Signs, line: str) -> bool:
    """Notes a single-line sign; False when the line is none."""
    if firmware := _FIRMWARE.match(line):
        signs.uefi = (firmware[1] or firmware[2]).lower() == "uefi"
    elif _NO_VARIABLES in line:
        signs.uefi = False
    elif current := _CURRENT.match(line):
        signs.current, signs.uefi = current[1], True
    elif product := _PRODUCT.match(line):
        signs.product = product[1]
    elif _UNMANAGED.search(line) and ("E:" in line or "proxmox" in line):
        signs.managed = False
    elif line == "grub: /etc/default/grub":
        signs.grub_config = True
    else:
        return False
    return True


def _loader(signs: _Signs, entries: dict[str, str], kinds: list[str]) -> BootLoader:
    """The booted entry counts before the configuration."""
    booted = entries.get(signs.current or "", "")
    if signs.product == "systemd-boot" or _SYSTEMD_FILE.search(booted):
        return BootLoader.SYSTEMD_BOOT
    if signs.product == "GRUB" or _GRUB_FILE.search(booted):
        return BootLoader.GRUB_UEFI
    grub = any("grub" in kind for kind in kinds)
    systemd = any("uefi" in kind for kind in kinds)
    # Without proxmox-boot-tool's boot partitions a Proxmox host boots GRUB; every host has GRUB's file.
    unmanaged = signs.managed is False
    if signs.uefi is False:
        known = grub or unmanaged or signs.grub_config
        return BootLoader.GRUB_BIOS if known else BootLoader.UNKNOWN
    if signs.uefi is None or (grub == systemd and not unmanaged):
        return BootLoader.UNKNOWN
    return BootLoader.SYSTEMD_BOOT if systemd else BootLoader.GRUB_UEFI


def _unquoted_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, raw in nonblank_lines(text):
        line = raw[:2400].strip()
        yield number, re.sub(r"^(?:>\s?)+", "", line)
