"""Values that may reach a script, each checked against its type and quoted once.

Types: qm.conf(5) and PVE::QemuServer::PCI (qemu-server 9.2.6). A value that does not fit its type
refuses the script; nothing is escaped into shape.
"""

import re
import shlex
from collections.abc import Mapping

from webapp.diagnosis.scripts.model import ScriptError

LONGEST = 4096
"""Longest value in characters; Proxmox's own args are far shorter."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_TYPES = {
    "a VM id": re.compile(r"[1-9][0-9]{2,8}"),
    "a VM name": re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?"),
    "a UUID": re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "a PCI address": re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f](?:\.[0-7])?"),
    "a mapping id": re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,127}"),
    "a machine": re.compile(r"(?:type=)?(?:pc|q35|pc-(?:i440fx|q35)-[0-9]{1,2}(?:\.[0-9]{1,2}){1,2})"
                            r"(?:\+pve[0-9]{1,3})?(?:,[a-z0-9-]{1,30}=[A-Za-z0-9_-]{1,30}){0,6}"),
    "a CPU type": re.compile(r"(?:cputype=)?[A-Za-z0-9][A-Za-z0-9_.-]{0,60}"
                             r"(?:,[a-z0-9-]{1,30}=[A-Za-z0-9_+.;-]{1,600}){0,8}"),
    "a MAC address": re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}"),
    "a number": re.compile(r"0|[1-9][0-9]{0,8}"),
    "an environment variable": re.compile(r"[A-Z][A-Z0-9_]{0,60}"),
    "a plain word": re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,:/%^+-]{0,200}"),
    "a boot loader": re.compile(r"systemd-boot|grub-uefi|grub-bios|unknown"),
}  # fmt: skip


def checked(kind: str, value: str) -> str:
    """The value, if all of it is of this type. Raises ScriptError with a sentence."""
    if _TYPES[kind].fullmatch(value) is None:
        raise ScriptError(f"{_printable(value)} is not {kind}, so no script is made with it.")
    return value


def qemu_words(value: str) -> str:
    """An `args:` line: one printable line whose quotes pair. Raises ScriptError."""
    if not value.isascii() or not value.isprintable() or len(value) > LONGEST:
        raise ScriptError(f"The VM's args, {_printable(value)}, are not one plain line.")
    try:
        shlex.split(value)
    except ValueError:
        text = f"The quotes in the VM's args, {_printable(value)}, do not pair: Proxmox drops all of them."
        raise ScriptError(f"{text} Mend args first.") from None
    return value


def hostpci(value: str) -> tuple[str, dict[str, str]]:
    """ "0000:01:00.0,pcie=1" -> ("host", {"host": "0000:01:00.0", "pcie": "1"}), in order.

    Returns whether it names a host address or a mapping. Raises ScriptError for anything that is not
    of qemu-server's schema, PCI.pm.
    """
    properties: dict[str, str] = {}
    for word in value.split(","):
        key, equals, text = word.partition("=")
        key, text = (key, text) if equals else ("host", word)
        if key in properties or not _is_property(key, text):
            raise ScriptError(f"{_printable(value)} is not a hostpci line that Proxmox would take.")
        properties[key] = text
    named = [key for key in ("host", "mapping") if key in properties]
    if len(named) != 1:
        raise ScriptError(f"{_printable(value)} must name either an address or a mapping.")
    return named[0], properties


def _is_property(key: str, value: str) -> bool:
    if key == "host":
        return all(_TYPES["a PCI address"].fullmatch(part.lower()) for part in value.split(";"))
    if key == "mapping":
        return _TYPES["a mapping id"].fullmatch(value) is not None
    if key in {"pcie", "x-vga", "rombar", "legacy-igd"}:
        return value in {"0", "1", "on", "off", "yes", "no", "true", "false"}
    if key in {"vendor-id", "device-id", "sub-vendor-id", "sub-device-id"}:
        return re.fullmatch(r"0x[0-9a-fA-F]{4}", value) is not None
    return key in {"romfile", "mdev", "driver"} and bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", value))


def assignments(values: Mapping[str, str]) -> str:
    """One `name='value'` a line. Raises ScriptError for a value that is not one printable line."""
    return "\n".join(f"{name}={_shell_assignment(name, value)}" for name, value in values.items())


def _shell_assignment(name: str, value: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ScriptError(f"{name} is not a name for a value.")
    if not (value.isascii() and value.isprintable() and len(value) <= LONGEST):
        raise ScriptError(f"{_printable(value)} is not one plain line, so no script is made with it.")
    return "'" + value.replace("'", "'\\''") + "'"


def _printable(value: str) -> str:
    """For messages: printable, short."""
    return ascii(value if len(value) <= 60 else value[:57] + "…")
