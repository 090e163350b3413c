"""The reading for an output of nvidia-smi without the rows that a probe needs."""

from typing import Any

from agents.facts import Fact, Reading
from agents.parsing.smi_value import failure, no_devices
from agents.probe import Output


def no_answer(fact: Fact[Any], output: Output, subject: str) -> Reading[Any]:
    """The reading for an output without `subject`: a tool that failed is not a machine without GPUs."""
    if output.tool_missing:
        return fact.unsupported("nvidia-smi is not installed")
    if output.timed_out:
        return fact.unreadable("nvidia-smi did not answer in time")
    text = f"{output.stdout}\n{output.stderr}"
    failed = failure(text)
    if failed:
        return fact.unsupported(failed)
    if no_devices(text):
        return fact.absent("the driver lists no GPU")
    if output.refused:
        return fact.not_run("refused for lack of rights")
    first = text.strip().partition("\n")[0].strip()
    return fact.unreadable(f"no {subject} in the output: {first[:120]}" if first else "no output")


def cut(output: Output) -> tuple[str, ...]:
    """Reading.missing for an output that the collector cut."""
    if output.timed_out:
        return ("what would have come after the time limit",)
    return ("what came after the output limit",) if output.truncated else ()
