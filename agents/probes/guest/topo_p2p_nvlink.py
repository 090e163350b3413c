"""Between which GPU pairs the driver allows peer access over NVLink.

https://docs.nvidia.com/deploy/nvidia-smi/ (topo -p2p n). The answer is driver policy, not a test.
"""

from agents.facts.p2p import P2P_NVLINK
from agents.probe import Command, Output, Probe, Readings
from agents.probes.p2p_matrix import read_matrix, signature


def parse(output: Output) -> Readings:
    return read_matrix(P2P_NVLINK, output)


probe = Probe(
    __name__,
    title="Peer access over NVLink",
    commands=(Command("nvidia-smi topo -p2p n", needs=("nvidia-smi",)),),
    supplies=(P2P_NVLINK,),
    parse=parse,
    signature=signature("n", 0.3),
    timeout_s=20,
    slow=True,
)
