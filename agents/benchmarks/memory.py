"""The real bandwidth of each GPU's memory, on buffers of at least four times its L2.

A step that reads weights cannot be faster than this. Datasheets give the peak; streaming reads reach about nine
tenths of it.
"""

from agents.benchmark import Benchmark
from agents.facts.bench import TELEMETRY
from agents.facts.kernels import MEMORY, MemoryResult
from agents.parsing import kernel_lines
from agents.parsing.kernel_reading import reading
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry


def parse(output: Output) -> Readings:
    report = kernel_lines.memory(output.stdout)
    result = MemoryResult(report.rows, report.environment)
    return (reading(MEMORY, result, report, output),)


benchmark = Benchmark(
    __name__,
    title="Memory of each GPU",
    supplies=(MEMORY, TELEMETRY),
    parse=with_telemetry(parse, kernel_lines.MEMORY_SCHEMA),
    signature=Signature(
        typed=r"\bpayloads/kernels\b.*\bmemory\b",
        starts=(r'^\{"schema": ?"peerpath\.memory/1"', r'^\{"kernel": ?"\w+", ?"gpu":'),
        belongs=r"^\{",
    ),
    payload="kernels",
    argv=("--measure", "memory", "--limit", "110"),
    duration_s=20,
    timeout_s=130,
    gpu_memory_mib=2500,
    about=("How fast each GPU reads its own memory, far above its cache: the floor of a decode step rests on it."),
)
