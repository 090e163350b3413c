"""What launching, waiting and graphs cost here, and small matrix products: the parts of a decode step.

Times on the device and for a caller differ by what the processor adds, and that is what a step without
CUDA graphs pays for every kernel.
"""

from __future__ import annotations

from agents.benchmark import BATCH, HIDDEN, Benchmark
from agents.facts.bench import TELEMETRY
from agents.facts.kernels import LAUNCH, LaunchResult
from agents.parsing import kernel_lines
from agents.parsing.kernel_reading import reading
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry


def parse(output: Output) -> Readings:
    found = kernel_lines.launch(output.stdout)
    result = LaunchResult(found.rows, found.environment)
    return (reading(LAUNCH, result, found, output),)


benchmark = Benchmark(
    __name__,
    title="Launches and small products",
    supplies=(LAUNCH, TELEMETRY),
    parse=with_telemetry(parse, kernel_lines.LAUNCH_SCHEMA),
    signature=Signature(
        typed=r"\bpayloads/kernels\b.*\blaunch\b",
        starts=(r'^\{"schema": ?"peerpath\.launch/1"', r'^\{"what": ?"\w+", ?"gpu":'),
        belongs=r"^\{",
    ),
    payload="kernels",
    argv=("--measure", "launch", "--limit", "110"),
    duration_s=30,
    timeout_s=130,
    gpu_memory_mib=3500,
    choices=(
        HIDDEN,
        BATCH,
    ),
    about=(
        "What a kernel launch and a synchronise cost here, and small products at decode sizes: whether a"
        " step can be bound by the CPU that launches it."
    ),
)
