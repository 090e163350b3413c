"""Which GPU pairs the driver lets read each other's memory.

https://docs.nvidia.com/deploy/nvidia-smi/ (topo -p2p r). The answer is driver policy, not a test.
"""

from __future__ import annotations

from agents.facts.p2p import P2P_READ
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.p2p_matrix import read_matrix


def parse(output: Output) -> Readings:
    return read_matrix(P2P_READ, output)


probe = Probe(
    __name__,
    title="Peer reads the driver allows",
    commands=(Command("nvidia-smi topo -p2p r", needs=("nvidia-smi",)),),
    supplies=(P2P_READ,),
    parse=parse,
    signature=Signature(typed=r"nvidia-smi\s+topo\s+-p2p\s+r\b"),
    timeout_s=20,
    slow=True,
)
