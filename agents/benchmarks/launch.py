"""The cost of launches, waits, graphs and small matrix products: the parts of a decode step.

The time for a caller exceeds the device's time by the processor's share. A step without CUDA graphs pays that share
for every kernel.
"""

from dataclasses import replace

from agents.benchmark import BATCH, HIDDEN, Benchmark, Choice
from agents.facts.bench import TELEMETRY
from agents.facts.kernels import LAUNCH, LaunchResult
from agents.parsing import kernel_lines
from agents.parsing.kernel_reading import reading
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry


def parse(output: Output) -> Readings:
    report = kernel_lines.launch(output.stdout)
    result = LaunchResult(report.rows, report.environment)
    return (reading(LAUNCH, result, report, output),)


_NUMBER = "[0-9]{1,6}|"

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
        replace(HIDDEN, hint="6144 where it is empty", pattern=_NUMBER),
        Choice(
            "intermediate",
            "Intermediate size",
            hint="of a layer or expert, over the ranks; 2048 where it is empty",
            pattern=_NUMBER,
        ),
        Choice("experts", "Experts on a GPU", hint="32 where it is empty", pattern=_NUMBER),
        Choice("active", "Experts of a token", hint="8 where it is empty", pattern=_NUMBER),
        Choice("dtype", "Type", "bf16", "bf16, fp16 or fp32", "bf16|fp16|fp32"),
        replace(BATCH, hint="1 to 64 where it is empty"),
    ),
    about=(
        "What a kernel launch and a synchronise cost here, and small products at decode sizes: whether a"
        " step can be bound by the CPU that launches it."
    ),
)
