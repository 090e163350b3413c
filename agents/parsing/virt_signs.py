"""Signs of a hypervisor: lines of our snippet, or pasted output of systemd's tools.

systemd-detect-virt(1) prints one word, hostnamectl(1) "Virtualization: kvm". lscpu's "Virtualization: AMD-V" does not
count: it is a feature of the processor.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agents.parsing import dmi
from agents.parsing.lspci import LINE_CAP

# systemd's words (src/basic/virt.c, virtualization_table).
VMS = frozenset(("kvm", "qemu", "amazon", "google", "vmware", "microsoft", "xen", "oracle"))
VMS |= {"parallels", "bochs", "uml", "zvm", "powervm", "bhyve", "qnx", "acrn", "apple", "sre"}
VMS |= {"vm-other"}
CONTAINERS = frozenset(("docker", "podman", "lxc", "lxc-libvirt", "systemd-nspawn", "openvz"))
CONTAINERS |= {"rkt", "proot", "container-other"}

DETECTED = "systemd-detect-virt"
VENDOR = "lscpu hypervisor vendor"
FLAG = "cpu hypervisor flag"
CLOCKS = "clocksources"
_LABELS = frozenset((DETECTED, f"{DETECTED} container", VENDOR, FLAG, CLOCKS))
_LABELS |= {"arch", "kernel", "hypervisor type"}
# lscpu's (util-linux) names of CPUID signatures.
_VENDORS = {"KVM": "kvm", "Microsoft": "microsoft", "VMware": "vmware", "Xen": "xen"}
_LINE = re.compile(r"^\s*([a-z][a-z_ -]{2,40}): ?(.*)$")
_HOSTNAMECTL = re.compile(r"^\s*Virtualization: ([a-z0-9-]+)\s*$")


@dataclass(frozen=True, slots=True)
class Signs:
    """answers: of each source, by its label; "" for an empty answer. lines: 1-based."""

    answers: Mapping[str, str]
    lines: Mapping[str, int]
    names: dmi.Names | None = None

    @property
    def vm(self) -> str:
        """systemd's word for the VM; "" without its answer."""
        return self.answers.get(DETECTED, "")

    @property
    def container(self) -> str:
        return self.answers.get(f"{DETECTED} container", "")

    @property
    def firmware(self) -> str | None:
        return dmi.virt_kind(self.names) if self.names else None

    @property
    def signature(self) -> str | None:
        """The hypervisor that the processor or the kernel names."""
        if "kvm-clock" in self.answers.get(CLOCKS, "").split():
            return "kvm"
        named = _VENDORS.get(self.answers.get(VENDOR, ""))
        return named or self.answers.get("hypervisor type") or None

    def where(self, *labels: str) -> tuple[int, ...]:
        return tuple(sorted(self.lines[label] for label in labels if label in self.lines))


def parse(text: str) -> Signs:
    """The first answer of each source; `answers` is empty when there is none."""
    answers: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        label, value = _answer(raw[:LINE_CAP])
        if label and label not in answers:
            answers[label], lines[label] = value, number
    return Signs(answers, lines, dmi.parse(text) if answers else None)


def _answer(line: str) -> tuple[str, str]:
    pair, named, word = _LINE.match(line), _HOSTNAMECTL.match(line), line.strip()
    if named and named[1] in VMS | CONTAINERS:
        return DETECTED, named[1]
    if word in VMS | CONTAINERS | {"none", "wsl"}:
        return DETECTED, word
    return (pair[1], pair[2].strip()) if pair and pair[1] in _LABELS else ("", "")
