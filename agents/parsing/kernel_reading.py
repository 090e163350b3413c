"""Turns the output of the kernels payload into a reading."""

from typing import Any, TypeVar

from agents.facts import Fact, Reading
from agents.parsing.kernel_lines import KernelLines
from agents.probe import Output

T = TypeVar("T")


def reading(fact: Fact[T], result: T, report: KernelLines[Any], output: Output) -> Reading[T]:
    payload = report.payload
    if output.tool_missing:
        return fact.unsupported("python3 was not found on the machine")
    if report.why_no_gpu:
        return fact.not_run(f"no GPU was measured: {report.why_no_gpu}", lines=report.lines)
    if report.rows:
        end = () if payload.ended else (f"the end: {payload.why_cut(timed_out=output.timed_out)}",)
        return fact.known(result, lines=report.lines, missing=(*payload.lost, *end))
    if payload.error:
        return fact.unsupported(payload.error)
    if payload.lost or payload.stopped:
        why = "; ".join(filter(None, [*payload.lost, payload.stopped]))
        return fact.unreadable(f"nothing could be measured: {why}"[:400])
    texts = (*output.lines, *output.stderr.splitlines())
    first = next((line for line in texts if line.strip()), "")
    return fact.unreadable(f"no measurement in the output: {first[:120]}")
