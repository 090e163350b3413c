"""Between which GPU pairs the driver allows writes to each other's memory.

https://docs.nvidia.com/deploy/nvidia-smi/ (topo -p2p w). The answer is driver policy, not a test; NCCL needs reads
and writes.
"""

from agents.facts.p2p import P2P_WRITE
from agents.probe import Command, Output, Probe, Readings
from agents.probes.p2p_matrix import read_matrix, signature


def parse(output: Output) -> Readings:
    return read_matrix(P2P_WRITE, output)


probe = Probe(
    __name__,
    title="Peer writes the driver allows",
    commands=(Command("nvidia-smi topo -p2p w", needs=("nvidia-smi",)),),
    supplies=(P2P_WRITE,),
    parse=parse,
    signature=signature("w|rw|wr", 0.3),
    timeout_s=20,
    slow=True,
)
