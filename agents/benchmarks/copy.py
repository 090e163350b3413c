"""Copies between GPUs, inside one GPU and through host memory: device-timed and host-synchronised.

The two timings differ by an order of magnitude on small copies (two H200, 2026: 12 KiB inside one GPU
takes 0.9 µs of device time and 14 to 17 µs with a synchronise per call), so every row says which it is.
"""

from agents.benchmark import BATCH, BYTES, HIDDEN, PAIRS, Benchmark
from agents.facts.bench import COPY, TELEMETRY
from agents.parsing import copy_lines
from agents.parsing.copy_lines import SCHEMA
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (COPY.unsupported("python3 was not found on the machine"),)
    report = copy_lines.parse(output.stdout)
    if report.result.rows:
        end = () if report.ended else (f"the end: {_why_cut(report, output)}",)
        return (COPY.known(report.result, lines=report.lines, missing=(*report.lost, *end)),)
    if report.error:
        return (COPY.unsupported(report.error),)
    if report.lost:
        return (COPY.unreadable(f"nothing could be measured: {'; '.join(report.lost)}"),)
    first = next((line for line in (*output.lines, *output.stderr.splitlines()) if line.strip()), "")
    return (COPY.unreadable(f"no measurement in the output: {first[:120]}"),)


def _why_cut(report: copy_lines.CopyLines, output: Output) -> str:
    if report.stopped or report.error:
        return report.stopped or report.error
    return "it ran out of time" if output.timed_out else "the output stops before it"


benchmark = Benchmark(
    __name__,
    title="Copies between the GPUs",
    supplies=(COPY, TELEMETRY),
    parse=with_telemetry(parse, SCHEMA),
    signature=Signature(
        typed=r"\bpayloads/copy\b",
        starts=(r'^\{"schema": ?"peerpath\.copy/1"', r'^\{.*"size_bytes":.*"time_us":'),
        belongs=r"^\{",
    ),
    payload="copy",
    argv=("--limit", "150"),
    duration_s=60,
    timeout_s=180,
    gpu_memory_mib=1200,
    choices=(HIDDEN, BATCH, BYTES, PAIRS),
    about=(
        "Copies between GPUs at the sizes your model sends, timed twice: on the device, and as a program that"
        " waits for each copy sees it. The second reads 10–20 µs even inside one GPU, so it alone proves"
        " nothing; controls for that are measured along. Peer access is tried on and off in processes of"
        " their own."
    ),
)
