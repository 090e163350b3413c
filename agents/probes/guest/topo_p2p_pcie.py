"""The GPU pairs that have the driver's PCIe peer property.

https://docs.nvidia.com/deploy/nvidia-smi/ (topo -p2p p).
NS beside OK for reads is normal where NVLink carries them.
"""

from agents.facts.p2p import P2P_PCIE
from agents.probe import Command, Output, Probe, Readings
from agents.probes.p2p_matrix import read_matrix, signature


def parse(output: Output) -> Readings:
    return read_matrix(P2P_PCIE, output)


probe = Probe(
    __name__,
    title="Peer access over PCIe (property)",
    commands=(Command("nvidia-smi topo -p2p p", needs=("nvidia-smi",)),),
    supplies=(P2P_PCIE,),
    parse=parse,
    signature=signature("p|prop", 0.3),
    timeout_s=20,
    slow=True,
)
