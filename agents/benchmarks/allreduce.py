"""All-reduces over all GPUs, with checked values, with and without P2P: one reading for each arm.

Device time is measured inside a CUDA graph: eager all-reduces of 12 KiB read about 40 µs with and without P2P,
although the devices need 7.5 and 12.9 µs (two H200, 2026).
"""

from agents.benchmark import BATCH, HIDDEN, Benchmark, Choice
from agents.facts import Reading
from agents.facts.bench import ALLREDUCE, TELEMETRY, AllReduceResult
from agents.parsing import allreduce_lines
from agents.parsing.allreduce_lines import AllReduceLines, Arm
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (ALLREDUCE.unsupported("python3 was not found on the machine"),)
    report = allreduce_lines.parse(output.stdout)
    payload = report.payload
    if report.why_no_gpu:
        return (ALLREDUCE.not_run(f"no GPU was measured: {report.why_no_gpu}"),)
    if report.arms:
        cut = () if payload.ended else (f"the end: {payload.why_cut(timed_out=output.timed_out)}",)
        return tuple(_arm_reading(arm, cut) for arm in report.arms)
    if payload.error:
        return (ALLREDUCE.unsupported(payload.error),)
    if report.verdict == "unusable":
        return (ALLREDUCE.unsupported(report.why),)
    return (ALLREDUCE.unreadable(_why_nothing_measured(report, output)),)


def _arm_reading(arm: Arm, cut: tuple[str, ...]) -> Reading[AllReduceResult]:
    """The reading of one arm. Rows of an arm that broke off do not show that its sums are right."""
    if arm.outcome in {"failed", "unusable"}:
        return ALLREDUCE.unreadable(f"{arm.name}: {arm.outcome}, {arm.why}", lines=arm.lines[-1:])
    if not arm.result.rows and arm.outcome != "hang":
        return ALLREDUCE.unreadable(f"{arm.name}: no row", lines=arm.lines[-1:])
    unfinished = () if arm.outcome else (f"{arm.name}: how it ended",)
    return ALLREDUCE.known(arm.result, lines=arm.lines, missing=(*unfinished, *cut))


def _why_nothing_measured(report: AllReduceLines, output: Output) -> str:
    if report.payload.lost or report.payload.stopped:
        return f"nothing could be measured: {'; '.join([*report.payload.lost, report.payload.stopped])}"[:400]
    lines = (*output.lines, *output.stderr.splitlines())
    first = next((line for line in lines if line.strip()), "")
    return f"no measurement in the output: {first[:120]}"


# Variables that choose how NCCL sends; none of them names a file or a library.
SETTING = (
    r"NCCL_(?:ALGO|PROTO|BUFFSIZE|NTHREADS|(?:MIN|MAX)_NCHANNELS|P2P_(?:DISABLE|LEVEL)"
    r"|SHM_(?:DISABLE|USE_CUDA_MEMCPY)|CUMEM_ENABLE)=[\w.:\-]{1,40}"
)

benchmark = Benchmark(
    __name__,
    title="All-reduce, with P2P and without",
    supplies=(ALLREDUCE, TELEMETRY),
    parse=with_telemetry(parse, allreduce_lines.SCHEMA),
    signature=Signature(
        typed=r"\bpayloads/allreduce\b",
        starts=(r'^\{"schema": ?"peerpath\.allreduce/1"', r'^\{"arm": ?"\w+", ?"(?:size_bytes|outcome)":'),
        belongs=r"^\{",
    ),
    payload="allreduce",
    besides=("_nccl",),
    argv=("--limit", "280"),
    duration_s=60,
    timeout_s=300,
    gpu_memory_mib=2000,
    choices=(
        HIDDEN,
        BATCH,
        Choice(
            "set",
            "NCCL’s settings",
            hint="for all arms, as in NCCL_PROTO=LL,NCCL_ALGO=Ring",
            pattern=f"{SETTING}(?:,{SETTING}){{0,7}}",
        ),
    ),
    about=(
        "NCCL itself sums over all GPUs, 4 KiB to 64 MiB. Every sum is checked, and timed inside a CUDA"
        " graph, queued, and with a wait for each. It runs twice in fresh processes: without P2P as the"
        " control, then as NCCL chooses; the transport is what NCCL’s own log names. If P2P hangs, this"
        " run hangs too: it is ended after 30 s and says so."
    ),
)
