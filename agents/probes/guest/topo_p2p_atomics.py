"""Between which GPU pairs the driver allows atomics in each other's memory.

https://docs.nvidia.com/deploy/nvidia-smi/ (topo -p2p a). Over PCIe they are often not OK where reads and writes are;
that is no fault.
"""

from agents.facts.p2p import P2P_ATOMICS
from agents.probe import Command, Output, Probe, Readings
from agents.probes.p2p_matrix import read_matrix, signature


def parse(output: Output) -> Readings:
    return read_matrix(P2P_ATOMICS, output)


probe = Probe(
    __name__,
    title="Peer atomics the driver allows",
    commands=(Command("nvidia-smi topo -p2p a", needs=("nvidia-smi",)),),
    supplies=(P2P_ATOMICS,),
    parse=parse,
    signature=signature("a", 0.3),
    timeout_s=20,
    slow=True,
)
