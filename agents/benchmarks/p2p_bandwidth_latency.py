"""cuda-samples' p2pBandwidthLatencyTest and NVIDIA's nvbandwidth, as people run and paste them.

Neither checks the bytes at the destination (p2pBandwidthLatencyTest.cu; nvbandwidth verifies only its
own pattern where asked), so a fast matrix says nothing about delivery.
"""

from agents.benchmark import Benchmark
from agents.facts.bench import PAIR_MATRICES
from agents.parsing import pair_matrix
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (PAIR_MATRICES.unsupported("the program was not found"),)
    matrices, lines, missing = pair_matrix.parse(output.stdout)
    if not matrices:
        return (PAIR_MATRICES.unreadable("no matrix between GPUs"),)
    return (PAIR_MATRICES.known(matrices, lines=lines, missing=missing),)


benchmark = Benchmark(
    __name__,
    title="p2pBandwidthLatencyTest or nvbandwidth",
    supplies=(PAIR_MATRICES,),
    parse=parse,
    signature=Signature(
        typed=r"p2pBandwidthLatencyTest|\bnvbandwidth\b",
        starts=(
            r"^\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]",
            r"^nvbandwidth Version:",
            r"^P2P Connectivity Matrix",
            r"^(?:\w+ )?P2P=(?:Enabled|Disabled) .*Matrix \(",
            r"^Device=\d+ CAN(?:NOT)? Access Peer Device=\d+",
            r"^(?:memcpy|memory) .*\(row\).*\(column\).*\((?:GB/s|us)\)",
            r"^Running (?:device_to|host_to|all_to|one_to)\w+\.",
        ),
        belongs=(
            r"^\s*\d+\s+(?:[\d.]+|N/A|nan)|^\s*(?:D\\D|GPU|CPU)\s+\d|^\s*\d+(?:\s+\d+)*\s*$"
            r"|P2P|^Device[ =:]+\d|^Running |^SUM |^mem|^CUDA |^Driver Version|^\**NOTE|^So you can"
            r"|^Built from|^Additional|^Waived|^ERROR"
        ),
    ),
    tool="p2pBandwidthLatencyTest",
    duration_s=20,
    timeout_s=120,
    gpu_memory_mib=1000,
    about="The CUDA sample that is on this machine: all pairs with P2P and without.",
)
