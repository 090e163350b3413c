"""Whether bytes that one GPU writes to another arrive, as the receiving GPU's own process sees it.

A driver that grants peer access, a fast matrix and a right read-back on the sender's side do not show it:
GeForce cards in a VM were seen to pass all three and never to deliver (NVIDIA/nccl issue 2335).
"""

from __future__ import annotations

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
    found = delivery_lines.parse(output.stdout)
    said = found.said
    if found.played:
        return (DELIVERY.not_run(f"no GPU was checked: {found.played}", lines=found.lines),)
    if found.pairs:
        cut = () if said.ended else (f"the end: {said.why_cut(timed_out=output.timed_out)}",)
        missing = (*found.missing, *cut)
        result = DeliveryResult(found.pairs, said.environment)
        return (DELIVERY.known(result, lines=found.lines, missing=missing),)
    if said.error:
        return (DELIVERY.unsupported(said.error),)
    if found.missing:
        return (_nothing(found),)
    first = next((line for line in (*output.lines, *output.stderr.splitlines()) if line.strip()), "")
    return (DELIVERY.unreadable(f"no check in the output: {first[:120]}"),)


def _nothing(found: DeliveryLines) -> Reading[DeliveryResult]:
    why = f"no pair could be checked: {'; '.join(found.missing)}"[:400]
    if found.checks and all(check.verdict == "unusable" for check in found.checks):
        return DELIVERY.unsupported(why, lines=found.lines)
    return DELIVERY.unreadable(why, lines=found.lines)


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
