"""The NUMA nodes of the host: their CPUs and memory, for placing a VM beside its GPUs.

numactl(8), lscpu(1), /sys/devices/system/node.
"""

from agents.facts.platform import HOST_NUMA_NODES
from agents.parsing import lscpu, numa
from agents.probe import Command, Output, Probe, Readings, Signature

_SYSFS = """[ -d /sys/devices/system/node/node0 ] || exit 127
cd /sys/devices/system/node || exit
for n in node[0-9]*; do echo "$n cpulist: $(cat "$n/cpulist")"; grep MemTotal "$n/meminfo"; done"""


def parse(output: Output) -> Readings:
    answer = numa.parse(output.stdout)
    if answer:
        nodes, lines, missing = answer
        return (HOST_NUMA_NODES.known(nodes, lines=lines, missing=missing),)
    cpu = lscpu.parse(output.stdout)
    if cpu.numa_nodes:
        lines = (cpu.lines["numa_nodes"],)
        missing = ("memory of each node",)
        return (HOST_NUMA_NODES.known(cpu.numa_nodes, lines=lines, missing=missing),)
    if output.tool_missing:
        return (HOST_NUMA_NODES.unsupported("neither numactl nor NUMA nodes in sysfs"),)
    if output.refused:
        return (HOST_NUMA_NODES.not_run("reading the nodes was refused"),)
    return (HOST_NUMA_NODES.unreadable("no NUMA node in the output"),)


probe = Probe(
    __name__,
    title="NUMA nodes of the host",
    commands=(Command(_SYSFS), Command("numactl -H", needs=("numactl",))),
    supplies=(HOST_NUMA_NODES,),
    parse=parse,
    signature=Signature(
        typed=r"numactl\s+(?:-H|--hardware)|lscpu\b",
        starts=(r"^available: \d+ nodes?\b", r"^node ?\d+ (?:cpus|cpulist): "),
        belongs=r"^node\b|^Node \d|^\s*\d+:\s+\d|^available: ",
        any_machine=True,
    ),
)
