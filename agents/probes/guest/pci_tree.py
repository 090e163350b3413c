"""The guest's PCI tree: which bridges each device sits behind, and the emulated board that shows.

In a VM the tree is QEMU's: it never tells where a GPU physically is. Real path names come from sysfs;
a pasted `lspci -t` gives its board too.
"""

from __future__ import annotations

import re

from agents.facts import Reading
from agents.facts.host import GUEST_PCI_TREE, PciNode
from agents.facts.platform import MACHINE_TYPE
from agents.parsing import lspci, sysfs_pci
from agents.probe import Output, Probe, Readings, Signature
from agents.probes.guest.pci_devices import SYSFS
from agents.probes.machine_board import read_board

# The last device on a line of `lspci -tv`, or with ids as `-tvnn` prints them.
_LEAF = re.compile(
    r"[-+\\|]-?(?P<slot>[01][0-9a-f]\.[0-7])"
    r"(?:  (?P<name>\S.{0,200}?)(?: \[(?P<ids>[0-9a-f]{4}:[0-9a-f]{4})\])?)?$"
)


def parse(output: Output) -> Readings:
    devices = sysfs_pci.parse(output.stdout)
    if devices:
        return (_tree(devices, output.truncated), read_board([d.listed for d in devices]))
    leaves = _leaves(output.stdout)
    if leaves:
        return (
            GUEST_PCI_TREE.not_run("drawn by lspci -t; the guest's tree is read from sysfs"),
            read_board(leaves),
        )
    facts = (GUEST_PCI_TREE, MACHINE_TYPE)
    if output.tool_missing:
        return tuple(f.unsupported("no sysfs") for f in facts)
    if output.stdout.strip():
        return tuple(f.unreadable("no line is a PCI device") for f in facts)
    return tuple(f.absent("no PCI devices") for f in facts)


def _tree(devices: tuple[sysfs_pci.Device, ...], truncated: bool) -> Reading[tuple[PciNode, ...]]:
    placed = [device for device in devices if device.root]
    if not placed:
        return GUEST_PCI_TREE.unreadable("no path in the output tells where a device sits")
    nodes = tuple(PciNode(d.address, d.root, d.bridges, f"{d.vendor}:{d.device}") for d in placed)
    missing = [f"place of {d.address}" for d in devices if not d.root]
    missing += ["the end of the list"] if truncated else []
    lines = tuple(device.line for device in placed)
    return GUEST_PCI_TREE.known(nodes, lines=lines, missing=tuple(missing))


def _leaves(text: str) -> list[lspci.Device]:
    """Devices of a drawn tree, by slot alone: enough for ids and names, not for places."""
    found = []
    for number, raw in enumerate(text.splitlines(), 1):
        leaf = _LEAF.search(raw[: lspci.LINE_CAP].rstrip())
        if leaf:
            address = f"0000:00:{leaf['slot']}"
            found.append(
                lspci.Device(address, number, vendor_device=leaf["ids"], name=leaf["name"] or "")
            )
    return found


probe = Probe(
    __name__,
    title="PCI tree as the guest sees it",
    commands=(SYSFS,),
    supplies=(GUEST_PCI_TREE, MACHINE_TYPE),
    parse=parse,
    signature=Signature(
        typed=r"lspci\b.*\s-\w*t",
        starts=(r"^\s*-(?:\+-)?\[[0-9a-f]{4}:[0-9a-f]{2}(?:-[0-9a-f]{2})?\]-",),
        belongs=r"^\s+[|\\+]|^\s*-(?:\+-)?\[",
    ),
)
