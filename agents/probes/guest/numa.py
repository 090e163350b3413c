"""NUMA nodes of the guest, and the node each GPU reports.

/sys/devices/system/node and each function's numa_node (-1: none, the usual case in a VM, where the hypervisor gives
no affinity). NUMA matters only with more than one node.
"""

from agents.facts import Reading
from agents.facts.gpu import GPU_NUMA, GpuNuma
from agents.facts.platform import NUMA_NODES, NumaNode
from agents.parsing import numa, sysfs_pci
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.guest.pci_devices import PCI

_NODES = r"""for n in /sys/devices/system/node/node[0-9]*; do
  [ -r "$n/cpulist" ] && echo "${n##*/} cpulist: $(cat "$n/cpulist")" && grep MemTotal "$n/meminfo"; done
devices"""


def parse(output: Output) -> Readings:
    return (_nodes(output), _gpus(output))


def _nodes(output: Output) -> Reading[tuple[NumaNode, ...]]:
    answer = numa.parse(output.stdout)
    if answer is not None:
        nodes, lines, missing = answer
        return NUMA_NODES.known(nodes, lines=lines, missing=missing)
    if "No NUMA" in output.stdout[:2000] or "No NUMA" in output.stderr[:2000]:
        return NUMA_NODES.absent("the kernel offers no NUMA: one node")
    if output.tool_missing:
        return NUMA_NODES.unsupported("numactl is not installed and sysfs shows no node")
    if sysfs_pci.parse(output.stdout) or not output.stdout.strip():
        return NUMA_NODES.unsupported("sysfs shows no NUMA node")
    return NUMA_NODES.unreadable("no NUMA node in the output")


def _gpus(output: Output) -> Reading[tuple[GpuNuma, ...]]:
    devices = sysfs_pci.parse(output.stdout)
    gpus = [device for device in devices if device.is_gpu]
    if gpus:
        lines = tuple(device.line for device in gpus)
        missing = tuple(f"node of {d.address}" for d in gpus if d.numa_node is None)
        return GPU_NUMA.known(
            tuple(GpuNuma(d.address, _node(d.numa_node)) for d in gpus if d.numa_node is not None),
            lines=lines,
            missing=missing,
        )
    if devices and not output.truncated:
        return GPU_NUMA.absent("no NVIDIA display function on the PCI bus")
    return GPU_NUMA.not_run("the PCI devices were not listed")


def _node(numa_node: int) -> int | None:
    return numa_node if numa_node >= 0 else None


probe = Probe(
    __name__,
    title="NUMA nodes",
    commands=(Command(_NODES, calls=PCI),),
    supplies=(NUMA_NODES, GPU_NUMA),
    parse=parse,
    signature=Signature(
        typed=r"numactl\s+(?:-H|--hardware)|/sys/devices/system/node\b",
        starts=(r"^available: \d+ nodes? \(", r"^node ?\d+ (?:cpus|cpulist): "),
        belongs=r"^node|^Node \d+ MemTotal|^\s+\d+:|\bvendor=0x[0-9a-f]{4}",
        any_machine=True,
    ),
)
