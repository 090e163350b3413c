"""Compares NCCL's settings at the model's message sizes in an experiment.

Every try has fresh processes, and every block holds each arm once in a newly drawn order, so that disturbances fall
on all arms alike. webapp/diagnosis/compare/sweep.py decides which arms really differ.
"""

from __future__ import annotations

from agents.benchmark import BATCH, HIDDEN, Benchmark
from agents.facts.bench import NCCL_SWEEP, TELEMETRY
from agents.parsing import nccl_sweep_lines
from agents.parsing.nccl_sweep_lines import SweepLines
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (NCCL_SWEEP.unsupported("python3 was not found on the machine"),)
    report = nccl_sweep_lines.parse(output.stdout)
    payload = report.payload
    if report.why_no_gpu:
        return (NCCL_SWEEP.not_run(f"no GPU was measured: {report.why_no_gpu}"),)
    if report.unusable or payload.error:
        return (NCCL_SWEEP.unsupported((report.unusable or payload.error)[:400]),)
    if report.result:
        cut = () if payload.ended else (f"the end: {payload.why_cut(timed_out=output.timed_out)}",)
        return (NCCL_SWEEP.known(report.result, lines=report.lines, missing=(*payload.lost, *cut)),)
    return (NCCL_SWEEP.unreadable(_why_no_block(report, output)),)


def _why_no_block(report: SweepLines, output: Output) -> str:
    payload = report.payload
    if payload.rows or payload.lost or payload.stopped:
        why = "; ".join(filter(None, [*payload.lost, payload.why_cut(timed_out=output.timed_out)]))
        return f"no whole block: {why}"[:400]
    lines = (*output.lines, *output.stderr.splitlines())
    first = next((line for line in lines if line.strip()), "")
    return f"no measurement in the output: {first[:120]}"


benchmark = Benchmark(
    __name__,
    title="NCCL settings against each other",
    supplies=(NCCL_SWEEP, TELEMETRY),
    parse=with_telemetry(parse, nccl_sweep_lines.SCHEMA),
    signature=Signature(
        typed=r"\bpayloads/nccl_sweep\b",
        starts=(r'^\{"schema": ?"peerpath\.nccl_sweep/1"', r'^\{"plan": ?\{"arms":', r'^\{"arm": ?"\w+", ?"block":'),
        belongs=r"^\{",
    ),
    payload="nccl_sweep",
    besides=("_nccl",),
    argv=("--limit", "270", "--repeats", "7"),
    duration_s=180,
    timeout_s=300,
    gpu_memory_mib=1500,
    choices=(HIDDEN, BATCH),
    about=(
        "NCCL’s settings against each other on your message sizes: fresh processes for each, in mixed order"
        " and repeated, so that only differences that are real are called so. Each setting that hangs is"
        " ended and said."
    ),
)
