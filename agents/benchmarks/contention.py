"""The time of copies beside other copies: between all GPUs, many to one, one to many, and all with the host.

A pair alone says little about a machine in which every GPU sends at once: without peer access all copies share the
host's memory; behind one root complex or switch they share a link.
"""

from agents.benchmark import Benchmark
from agents.facts.bench import CONTENTION, TELEMETRY
from agents.parsing import contention_lines
from agents.parsing.contention_lines import SCHEMA
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (CONTENTION.unsupported("python3 was not found on the machine"),)
    result, payload = contention_lines.parse(output.stdout)
    lines = tuple(row.line for row in result.rows)
    if result.environment.get("device") == "cpu":
        return (CONTENTION.not_run("no GPU was measured: the CPU's memory, to try the program"),)
    if result.rows:
        cut = () if payload.ended else (f"the end: {payload.why_cut(timed_out=output.timed_out)}",)
        return (CONTENTION.known(result, lines=lines, missing=(*payload.lost, *cut)),)
    if payload.error:
        return (CONTENTION.unsupported(payload.error),)
    if payload.lost:
        why = "; ".join(payload.lost)[:400]
        return (CONTENTION.unreadable(f"nothing could be measured: {why}"),)
    first = next((line for line in (*output.lines, *output.stderr.splitlines()) if line), "")
    return (CONTENTION.unreadable(f"no measurement in the output: {first[:120]}"),)


benchmark = Benchmark(
    __name__,
    title="Copies beside other copies",
    supplies=(CONTENTION, TELEMETRY),
    parse=with_telemetry(parse, SCHEMA),
    signature=Signature(
        typed=r"\bpayloads/contention\b",
        starts=(r'^\{"schema": ?"peerpath\.contention/1"', r'^\{"pattern":.*"flows":.*"time_us":'),
        belongs=r"^\{",
    ),
    payload="contention",
    argv=("--limit", "120"),
    duration_s=30,
    timeout_s=150,
    gpu_memory_mib=800,
    about=(
        "Many copies at once, all to all and many to one, beside one alone: whether pairs share a way that"
        " gets narrow when all of them use it, as collectives do."
    ),
)
