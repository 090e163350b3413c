"""The host's PCI tree and each GPU's place in it: root complex, root port, switch, node, group, link.

`lspci -tv` shows the tree; sysfs shows the class, NUMA node, IOMMU group and link. The link falls to 2.5 GT/s while a
GPU idles, so the output also shows its maximum.
"""

import re

from agents.facts import Reading
from agents.facts.host import GPU_PATHS, PCI_TREE, GpuPath, PciNode
from agents.parsing import lspci_tree, sysfs_pci
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""command -v lspci >/dev/null && lspci -tvnn
for d in /sys/bus/pci/devices/*; do
  [ -r "$d/class" ] || continue
  read -r v <"$d/vendor"; read -r i <"$d/device"; read -r c <"$d/class"
  group=$(readlink "$d/iommu_group") numa= speed= width= top= wide= driver=
  { read -r numa <"$d/numa_node"; [ "$v" != 0x10de ] || { driver=$(readlink "$d/driver")
    read -r speed _ <"$d/current_link_speed"; read -r width <"$d/current_link_width"
    read -r top _ <"$d/max_link_speed"; read -r wide <"$d/max_link_width"; }; } 2>/dev/null
  echo "${d##*/} vendor=$v device=$i class=$c driver=${driver##*/} numa=$numa group=${group##*/}" \
    "link=$speed:x$width:$top:x$wide path=$(readlink -f "$d")"
done"""
_EXTRA = re.compile(r"\bgroup=(\d{0,6}) link=([\d.]*):x(\d*):([\d.]*):x(\d*)")
_PATH = re.compile(r"(?:^|\s|=)((?:/sys/devices)?/pci[0-9a-f]{4,8}:[0-9a-f]{2}/[0-9a-f:./]+)")


def parse(output: Output) -> Readings:
    tree = lspci_tree.parse(output.stdout)
    by_path = _nodes_by_path(output.lines)
    if tree is None and not by_path:
        return _no_readings(output)
    tree_nodes = tree.nodes if tree else ()
    nodes = {node.address: node for node in (*tree_nodes, *(node for node, _ in by_path))}
    nodes |= {node.address: node for node in tree_nodes}
    lines = tree.lines if tree else tuple(line for _, line in by_path)
    missing = ("devices: the text is cut",) if output.truncated or (tree and tree.cut) else ()
    known = PCI_TREE.known(tuple(nodes.values()), lines=tuple(sorted(set(lines))), missing=missing)
    return (known, _gpu_paths(output, nodes, missing))


def _nodes_by_path(lines: list[str]) -> list[tuple[PciNode, int]]:
    matches = ((_PATH.search(line[:2000]), number) for number, line in enumerate(lines, 1))
    nodes = ((lspci_tree.from_path(m[1]), number) for m, number in matches if m)
    return [(node, number) for node, number in nodes if node is not None]


def _gpu_paths(output: Output, nodes: dict[str, PciNode], cut: tuple[str, ...]) -> Reading[tuple[GpuPath, ...]]:
    """Finds GPUs by class where sysfs gives it, else by the names in the tree."""
    listed = sysfs_pci.parse(output.stdout)
    if listed:
        gpus = [d for d in listed if d.is_gpu]
        if not gpus:
            return GPU_PATHS.absent("no NVIDIA display function on the PCI bus")
        lines = output.lines
        paths = tuple(_path(d, nodes.get(d.address), lines[d.line - 1]) for d in gpus)
        return GPU_PATHS.known(paths, lines=tuple(d.line for d in gpus), missing=cut)
    named = lspci_tree.gpus(nodes.values())
    if named:
        paths = tuple(GpuPath(n.address, n.root, lspci_tree.root_port(n), lspci_tree.switch(n)) for n in named)
        missing = (*cut, "NUMA node, IOMMU group and link: a tree does not print them")
        names = {n.name for n in named if n.name}
        drawn = enumerate(output.lines, 1)
        where = tuple(i for i, text in drawn if any(name in text for name in names))
        return GPU_PATHS.known(paths, lines=where, missing=missing)
    if any(node.name for node in nodes.values()) and not cut and output.alternative >= 0:
        return GPU_PATHS.absent("the tree names no NVIDIA GPU")
    return GPU_PATHS.not_run("the text does not show which devices are GPUs")


def _path(device: sysfs_pci.Device, node: PciNode | None, line: str) -> GpuPath:
    extra = _EXTRA.search(line)
    node = lspci_tree.from_path(device.path) or node or PciNode(device.address, "")
    numa = device.numa_node if device.numa_node is not None and device.numa_node >= 0 else None
    return GpuPath(
        device.address,
        node.root,
        lspci_tree.root_port(node),
        lspci_tree.switch(node),
        numa,
        int(extra[1]) if extra and extra[1] else None,
        _link(extra) if extra else None,
    )


def _link(extra: re.Match[str]) -> str | None:
    """ "2.5 GT/s x16 (at most 32.0 GT/s x16)"; None where sysfs gives no link."""
    _, speed, width, top, wide = extra.groups()
    if not speed or not width:
        return None
    now, most = f"{speed} GT/s x{width}", f"{top} GT/s x{wide}"
    return now if now == most or not top else f"{now} (at most {most})"


def _no_readings(output: Output) -> Readings:
    facts = (PCI_TREE, GPU_PATHS)
    if output.tool_missing:
        return tuple(f.unsupported("lspci is not installed and sysfs shows no PCI") for f in facts)
    if output.refused:
        return tuple(f.not_run("reading the PCI bus was refused") for f in facts)
    if lspci_tree.is_tree(output.stdout):
        why = "a tree without its root: it does not tell where the devices are"
        return tuple(f.unreadable(why) for f in facts)
    return tuple(f.unreadable("no PCI tree in the output") for f in facts)


probe = Probe(
    __name__,
    title="PCI tree of the host",
    commands=(Command(_SH),),
    supplies=(PCI_TREE, GPU_PATHS),
    parse=parse,
    signature=Signature(
        typed=r"lspci\s+(?:-\w+\s+)*-\w*t|readlink\s+-f\s+/sys/bus/pci",
        starts=(
            r"^\s*[-+\\|][-+ |]*\[[0-9a-f]{4}:[0-9a-f]{2}\]-",
            r"^\s*[+\\]-[01][0-9a-f]\.[0-7](?:-\[|\s)",
            r"^/sys/devices/pci[0-9a-f]{4}:[0-9a-f]{2}/",
        ),
        belongs=r"^[\s|]*[-+\\|]|^\.{3}$|/sys/devices/pci|\bvendor=0x",
        any_machine=True,
    ),
    timeout_s=30,
    slow=True,
)
