"""How a run of the kernels payload ends as a reading."""

from __future__ import annotations

from typing import Any, TypeVar

from agents.facts import Fact, Reading
from agents.parsing.kernel_lines import KernelLines
from agents.probe import Output

T = TypeVar("T")


def reading(fact: Fact[T], result: T, found: KernelLines[Any], output: Output) -> Reading[T]:
    said = found.said
    if output.tool_missing:
        return fact.unsupported("python3 was not found on the machine")
    if found.played:
        return fact.not_run(f"no GPU was measured: {found.played}", lines=found.lines)
    if found.rows:
        end = () if said.ended else (f"the end: {said.why_cut(timed_out=output.timed_out)}",)
        return fact.known(result, lines=found.lines, missing=(*said.lost, *end))
    if said.error:
        return fact.unsupported(said.error)
    if said.lost or said.stopped:
        why = "; ".join(filter(None, [*said.lost, said.stopped]))
        return fact.unreadable(f"nothing could be measured: {why}"[:400])
    texts = (*output.lines, *output.stderr.splitlines())
    first = next((line for line in texts if line.strip()), "")
    return fact.unreadable(f"no measurement in the output: {first[:120]}")
