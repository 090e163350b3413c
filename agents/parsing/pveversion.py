"""`pveversion` and `pveversion -v`: Proxmox VE and its packages.

Formats: `pve-manager/8.4.1/2a5fa54a8503f96d (running kernel: 6.8.12-10-pve)`; with -v one `package:
version` a line, the first `proxmox-ve: 9.0.0 (running kernel: …)` and `pve-manager: 9.0.3 (running
version: …)`. Proxmox VE shares its major version with qemu-server and pve-docs from 4 on.
"""

import re
from dataclasses import dataclass

_SHORT = re.compile(r"\bpve-manager/([0-9][\w.~-]{0,30})/\S*(?: \(running kernel: ([^)\s]{1,60})\))?")
_PACKAGE = re.compile(
    r"^(?:[\s>]*)([a-z0-9][a-z0-9.+-]{1,60}): ([0-9][\w.+~:-]{0,60})"
    r"(?: \(running (kernel|version): ([^)]{1,80})\))?\s*$"
)


@dataclass(frozen=True, slots=True)
class PveVersion:
    """manager: pve-manager's version, which is that of Proxmox VE. None: not in the text.

    major: from manager, else from packages that share it.
    """

    manager: str | None
    kernel: str | None
    qemu: str | None
    qemu_server: str | None
    major: int | None
    lines: tuple[int, ...]


def parse(text: str) -> PveVersion | None:
    """The versions; None when no line is one of pveversion's."""
    packages: dict[str, str] = {}
    lines: list[int] = []
    kernel = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:400]
        short, package = _SHORT.search(line), _PACKAGE.match(line)
        if short:
            packages.setdefault("pve-manager", short[1])
            kernel = kernel or short[2]
            lines.append(number)
        elif package and _is_proxmox(package[1]):
            packages.setdefault(package[1], package[2])
            kernel = kernel or (package[4] if package[3] == "kernel" else None)
            lines.append(number)
    if not packages:
        return None
    return PveVersion(
        packages.get("pve-manager"),
        kernel,
        packages.get("pve-qemu-kvm"),
        packages.get("qemu-server"),
        _major(packages),
        tuple(lines),
    )


def _is_proxmox(package: str) -> bool:
    return package.startswith(("pve-", "proxmox-", "libpve-")) or package == "qemu-server"


def _major(packages: dict[str, str]) -> int | None:
    for package in ("pve-manager", "proxmox-ve", "qemu-server", "pve-docs"):
        if package in packages:
            return int(re.split(r"\D", packages[package], maxsplit=1)[0][:4])
    return None
