"""Between which GPU pairs the driver allows reads of each other's memory.

https://docs.nvidia.com/deploy/nvidia-smi/ (topo -p2p r). The answer is driver policy, not a test. A person may ask
for reads and writes at once ("rw"): one matrix then answers for both.
"""

from agents.facts.p2p import P2P_READ
from agents.probe import Command, Output, Probe, Readings
from agents.probes.p2p_matrix import read_matrix, signature


def parse(output: Output) -> Readings:
    return read_matrix(P2P_READ, output)


probe = Probe(
    __name__,
    title="Peer reads the driver allows",
    commands=(Command("nvidia-smi topo -p2p r", needs=("nvidia-smi",)),),
    supplies=(P2P_READ,),
    parse=parse,
    signature=signature("r|rw|wr", 0.6),
    timeout_s=20,
    slow=True,
)
