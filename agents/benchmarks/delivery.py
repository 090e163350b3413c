"""Whether bytes that one GPU writes to another arrive, as the receiving GPU's own process sees it.

A driver that grants peer access, a fast matrix and a right read-back on the sender's side do not show it:
GeForce cards in a VM were seen to pass all three and never to deliver (NVIDIA/nccl issue 2335).
"""

from agents.benchmark import Benchmark
from agents.facts import Reading
from agents.facts.bench import DELIVERY, TELEMETRY, DeliveryResult
from agents.parsing import delivery_lines
from agents.parsing.delivery_lines import SCHEMA, DeliveryLines
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (DELIVERY.unsupported("python3 was not found on the machine"),)
    report = delivery_lines.parse(output.stdout)
    payload = report.payload
    if report.why_no_gpu:
        return (DELIVERY.not_run(f"no GPU was checked: {report.why_no_gpu}", lines=report.lines),)
    if report.pairs:
        cut = () if payload.ended else (f"the end: {payload.why_cut(timed_out=output.timed_out)}",)
        missing = (*report.missing, *cut)
        result = DeliveryResult(report.pairs, payload.environment)
        return (DELIVERY.known(result, lines=report.lines, missing=missing),)
    if payload.error:
        return (DELIVERY.unsupported(payload.error),)
    if report.missing:
        return (_no_pair_checked(report),)
    first = next((line for line in (*output.lines, *output.stderr.splitlines()) if line.strip()), "")
    return (DELIVERY.unreadable(f"no check in the output: {first[:120]}"),)


def _no_pair_checked(report: DeliveryLines) -> Reading[DeliveryResult]:
    why = f"no pair could be checked: {'; '.join(report.missing)}"[:400]
    if report.checks and all(check.verdict == "unusable" for check in report.checks):
        return DELIVERY.unsupported(why, lines=report.lines)
    return DELIVERY.unreadable(why, lines=report.lines)


benchmark = Benchmark(
    __name__,
    title="Do the bytes arrive",
    supplies=(DELIVERY, TELEMETRY),
    parse=with_telemetry(parse, SCHEMA),
    signature=Signature(
        typed=r"\bpayloads/delivery\b",
        starts=(r'^\{"schema": ?"peerpath\.delivery/1"', r'^\{.*"mapping":.*"verdict":'),
        belongs=r"^\{",
    ),
    payload="delivery",
    argv=("--limit", "280"),
    duration_s=20,
    timeout_s=300,
    gpu_memory_mib=1000,
    about=(
        "Every GPU writes a pattern to every other, by the copy engine and by a kernel’s stores, within one"
        " process and between two. The GPU that receives reads its own memory back and compares: a driver"
        " that allows P2P and a fast copy do not show that bytes arrive. A pair in which nothing comes back"
        " is a result, and the next one is tried."
    ),
)
