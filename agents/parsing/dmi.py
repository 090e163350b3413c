"""Firmware names (DMI): our `key: value` lines from /sys/class/dmi/id, dmidecode(8), hostnamectl(1),
Windows' systeminfo, and the kernel's "Hardware name:" and "DMI:" lines, quoted or wrapped.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agents.facts.platform import MachineType
from agents.parsing.lspci import LINE_CAP

# Labels of other tools -> the file name below /sys/class/dmi/id.
_SECTIONS = {
    "BIOS Information": {"Vendor": "bios_vendor", "Version": "bios_version"},
    "System Information": {
        "Manufacturer": "sys_vendor",
        "Product Name": "product_name",
        "Version": "product_version",
        "UUID": "product_uuid",
    },
    "Base Board Information": {"Manufacturer": "board_vendor", "Product Name": "board_name"},
    "Chassis Information": {"Manufacturer": "chassis_vendor"},
}
_LABELS = {
    "Hardware Vendor": "sys_vendor",
    "Hardware Model": "product_name",
    "System Manufacturer": "sys_vendor",
    "System Model": "product_name",
    "BIOS Version": "bios_vendor",
}
_FILES = frozenset((*_LABELS.values(), "product_version", "product_uuid", "board_vendor"))
_FILES |= {"board_name", "bios_version", "chassis_vendor"}
# `cat /sys/class/dmi/id/product_name` names the field only in the command.
_TYPED = re.compile(r"/dmi/id/(?:(\w{4,20})(?=\s|$)|\{([\w,]{4,200})\})")
_EMPTY = frozenset(("", "not specified", "to be filled by o.e.m.", "default string", "n/a", "none"))
_QUOTE = re.compile(r"^\s{0,8}(?:[>|]\s?)*")
_PAIR = re.compile(r"^\s*(?:dmi )?([A-Za-z][A-Za-z_ ]{2,40}?)\s*: ?(.*)$")
_KERNEL = re.compile(r"\b(?:Hardware name|DMI): ([A-Z0-9].*)$")
_UUID = re.compile(r"(?<![0-9a-fA-F-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_BIOS = re.compile(r",?\s*BIOS (\S.*)$")
# The first match counts: names of clouds that rename a KVM machine come before the names of its parts.
_KINDS = (
    (re.compile(r"amazon ec2(?!.{0,80}\.metal)"), "amazon"),
    (re.compile(r"google compute engine"), "google"),
    (re.compile(r"\bqemu\b|\bbochs\b|standard pc \((?:i440fx|q35)"), "qemu"),
    (re.compile(r"kubevirt|\bkvm\b"), "kvm"),
    (re.compile(r"vmware"), "vmware"),
    (re.compile(r"virtualbox|innotek"), "oracle"),
    (re.compile(r"\bxen\b"), "xen"),
    (re.compile(r"microsoft.{0,80}(?:virtual machine|hyper-v)"), "microsoft"),
    (re.compile(r"parallels"), "parallels"),
)


@dataclass(frozen=True, slots=True)
class Names:
    """fields: by file name below /sys/class/dmi/id, empty and placeholder values left out.

    combined: vendor and product in one text, as the kernel prints them. lines: 1-based.
    """

    combined: str
    fields: Mapping[str, str]
    lines: tuple[int, ...]

    @property
    def text(self) -> str:
        return " ".join((self.combined, *self.fields.values())).lower()[:LINE_CAP]


def parse(text: str) -> Names | None:
    """The machine's names; None when the text holds none."""
    fields: dict[str, str] = {}
    lines: list[int] = []
    section: Mapping[str, str] = {}
    combined = ""
    typed: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw[:LINE_CAP], count=1)
        section = _SECTIONS.get(line.strip(), {} if line.startswith("Handle ") else section)
        if "/dmi/id/" in line and (names := _TYPED.findall(line)):
            queries = (name for pair in names for name in ",".join(pair).split(","))
            typed = [name for name in queries if name in _FILES]
            continue
        if typed and not _PAIR.match(line):
            line = f"{typed.pop(0)}: {line.strip()}"
        kernel, pair = _KERNEL.search(line), _PAIR.match(line)
        if kernel:
            combined, bios = _split_firmware(kernel[1])
            fields |= {"bios_vendor": bios} if bios else {}
            lines.append(number)
        elif pair and (key := _dmi_file(pair[1], section)) and pair[2].strip().lower() not in _EMPTY:
            fields.setdefault(key, pair[2].strip())
            lines.append(number)
    combined = combined or _join_names(fields)
    return Names(combined, fields, tuple(lines)) if lines else None


def uuid(text: str) -> str | None:
    """The first UUID in a text, in lower case: firmware before SMBIOS 2.6 prints capitals."""
    match = _UUID.search(text[:LINE_CAP])
    return match[0].lower() if match else None


def virt_kind(names: Names) -> str | None:
    """The hypervisor that these names show, in systemd's words; None: no known one.

    As in systemd (src/basic/virt.c, detect_vm_dmi): "qemu" where firmware says QEMU, since firmware does not show
    whether KVM runs it. EC2's *.metal instances are no VMs.
    """
    return next((kind for pattern, kind in _KINDS if pattern.search(names.text)), None)


def machine_type(names: Names) -> MachineType | None:
    """QEMU's board from product name or version ("pc-q35-9.2"); None when they do not show it."""
    text = names.text
    if "i440fx" in text:
        return MachineType.I440FX
    if "q35" in text:
        return MachineType.Q35
    has_product = names.combined != names.fields.get("sys_vendor", "")
    return MachineType.OTHER if virt_kind(names) == "qemu" and has_product else None


def _dmi_file(label: str, section: Mapping[str, str]) -> str | None:
    label = label.strip()
    if label in _FILES:
        return label
    return section.get(label) or _LABELS.get(label)


def _split_firmware(text: str) -> tuple[str, str]:
    """Vendor and product, and the firmware after ", BIOS "."""
    bios = _BIOS.search(text)
    head = text[: bios.start()] if bios else text
    return head.strip().rstrip(","), bios[1].strip() if bios else ""


def _join_names(fields: Mapping[str, str]) -> str:
    vendor, product = fields.get("sys_vendor", ""), fields.get("product_name", "")
    return product if product.startswith(vendor) and product else f"{vendor} {product}".strip()
