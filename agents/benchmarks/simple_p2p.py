"""cuda-samples' simpleP2P, as people run and paste it (Samples/0_Introduction/simpleP2P).

It checks what kernels read from the peer. A failure is a wrong delivery; "Test passed" says nothing about writes to a
peer, which is how NCCL sends.
"""

from agents.benchmark import Benchmark
from agents.facts.bench import DELIVERY, PAIR_MATRICES, DeliveryResult
from agents.parsing import simple_p2p
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    report = simple_p2p.parse(output.stdout)
    if report is None:
        why = "no line of simpleP2P"
        if output.tool_missing:
            return tuple(f.unsupported("the program was not found") for f in (PAIR_MATRICES, DELIVERY))
        return (PAIR_MATRICES.unreadable(why), DELIVERY.unreadable(why))
    matrices = PAIR_MATRICES.known(report.matrices, lines=report.lines)
    if report.pair and report.passed is False:
        a, b = report.pair
        pairs = {f"{a}->{b}": False, f"{b}->{a}": False}
        result = DeliveryResult(pairs, {"gpus": ", ".join(report.names)} if report.names else {})
        missing = ("which of the two directions is wrong",)
        return (matrices, DELIVERY.known(result, lines=report.lines[-1:], missing=missing))
    if report.waived:
        return (matrices, DELIVERY.not_run("simpleP2P waived its test: no peer access"))
    why = "simpleP2P checks what is read from a peer, not what is written to one"
    return (matrices, DELIVERY.not_run(why if report.passed else "it did not come to its check"))


benchmark = Benchmark(
    __name__,
    title="simpleP2P",
    supplies=(PAIR_MATRICES, DELIVERY),
    parse=parse,
    signature=Signature(
        typed=r"\bsimpleP2P\b",
        starts=(r"^\[\S*simpleP2P\] - Starting", r"^> Peer access from .* : (?:Yes|No)"),
        belongs=(
            r"^>? ?Peer access|^Check|^CUDA-capable|^Enabling|^Allocating|^Creating|cudaMemcpy|^Prepar"
            r"|^Run kernel|^Copy data|^Disabling|^Shutting|^Test |^Verification error|^Two or more|^Peer to"
            r"|^Waiving"
        ),
    ),
    tool="simpleP2P",
    duration_s=10,
    timeout_s=60,
    gpu_memory_mib=500,
    about="The CUDA sample that is on this machine: one pair’s copies and a read that is checked.",
)
