"""The guest's PCI tree: the bridges above each device, and the emulated board.

In a VM the tree is the hypervisor's: it never shows where a GPU physically is. The collector reads sysfs; the parser
also reads a pasted `lspci -t`.
"""

from agents.facts import Reading
from agents.facts.host import GUEST_PCI_TREE, PciNode
from agents.facts.platform import MACHINE_TYPE, MachineType
from agents.parsing import lspci_tree, sysfs_pci
from agents.probe import Output, Probe, Readings, Signature
from agents.probes.guest.pci_devices import SYSFS
from agents.probes.machine_board import read_board


def parse(output: Output) -> Readings:
    devices = sysfs_pci.parse(output.stdout)
    if devices:
        return (_tree(devices, output.truncated), read_board([d.listed for d in devices]))
    drawn = lspci_tree.parse(output.stdout)
    if drawn:
        missing = ("the devices left out",) if drawn.cut or output.truncated else ()
        tree = GUEST_PCI_TREE.known(drawn.nodes, lines=drawn.lines, missing=missing)
        return (tree, _drawn_board(output.stdout, drawn))
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


def _drawn_board(text: str, drawn: lspci_tree.Tree) -> Reading[MachineType]:
    board = lspci_tree.machine_type(text)
    if board:
        return MACHINE_TYPE.known(board, lines=drawn.lines[:1])
    return MACHINE_TYPE.not_run("the drawn tree does not tell the board")


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
        any_machine=True,
    ),
)
