"""The system as NCCL sees it: its topology XML.

NCCL_TOPO_DUMP_FILE writes it; NCCL_TOPO_FILE and /var/run/nvidia-topologyd/virtualTopology.xml, which clouds put into
their VMs, replace NCCL's own detection (NCCL 2.28, src/graph/topo.cc). In a VM without such a file the topology is
flat.
"""

from agents.facts.nccl import NCCL_TOPOLOGY
from agents.parsing import nccl_topology
from agents.probe import Command, Output, Probe, Readings, Signature

_NONE = "no topology file"
_SH = rf"""for f in "$NCCL_TOPO_FILE" /var/run/nvidia-topologyd/virtualTopology.xml "$NCCL_TOPO_DUMP_FILE"; do
  [ -r "$f" ] && {{ echo "### $f"; cat "$f"; exit 0; }}; done
echo '{_NONE}'"""


def parse(output: Output) -> Readings:
    answer = nccl_topology.parse(output.stdout)
    if answer:
        topology, lines, cut = answer
        missing = ("the end of the file: there may be more GPUs",) if cut else ()
        return (NCCL_TOPOLOGY.known(topology, lines=lines, missing=missing),)
    if output.tool_missing:
        return (NCCL_TOPOLOGY.unsupported("no topology file can be read"),)
    if output.refused:
        return (NCCL_TOPOLOGY.not_run("reading the topology file was refused"),)
    if _NONE in output.stdout:
        return (NCCL_TOPOLOGY.absent("NCCL was given no topology file and asked to write none"),)
    return (NCCL_TOPOLOGY.unreadable("no GPU of an NCCL topology in the output"),)


probe = Probe(
    __name__,
    title="NCCL topology",
    commands=(Command(_SH),),
    supplies=(NCCL_TOPOLOGY,),
    parse=parse,
    signature=Signature(
        typed=r"NCCL_TOPO_(?:DUMP_)?FILE|virtualTopology\.xml|\btopo\S*\.xml",
        starts=(r"^\s*<system version=", r"^\s*<cpu (?:host_hash=\S+ )?numaid="),
        belongs=r"^\s*</?(?:system|cpu|pci|gpu|nvlink|nic|net)\b",
    ),
)
