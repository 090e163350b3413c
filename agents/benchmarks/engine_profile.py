"""A serving engine's recording of its own GPU work during real requests."""

from dataclasses import replace
from typing import Any

from agents.benchmark import Benchmark, Choice
from agents.benchmarks.profile_trace import readings_of
from agents.facts import Reading, ReadingKind
from agents.facts.bench import KERNEL_TIMES, PROFILE
from agents.parsing import profile_lines
from agents.parsing.profile_lines import ProfileLines
from agents.probe import Output, Readings, Signature

_FACTS = (PROFILE, KERNEL_TIMES)


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return tuple(fact.unsupported("python3 was not found on the machine") for fact in _FACTS)
    report = profile_lines.parse(output.stdout)
    if report.trace is None:
        payload = report.payload
        why = payload.error or "; ".join(payload.lost) or payload.stopped
        if why:
            return tuple(fact.not_run(why) for fact in _FACTS)
        return tuple(fact.unreadable("no kernel in the output") for fact in _FACTS)
    return tuple(_with_circumstances(reading, report, output) for reading in readings_of(report.trace))


def _with_circumstances(reading: Reading[Any], report: ProfileLines, output: Output) -> Reading[Any]:
    payload = report.payload
    at = payload.environment.get("concurrency")
    how = [reading.detail, f"at {at} at once" if at else "", *payload.notes]
    end = () if payload.ended else (f"the end: {payload.why_cut(timed_out=output.timed_out)}",)
    missing = (*payload.lost, *end) if reading.kind is ReadingKind.KNOWN else ()
    return replace(reading, detail="; ".join(filter(None, how)), missing=(*reading.missing, *missing))


benchmark = Benchmark(
    __name__,
    title="The engine’s own profile of a step",
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"\bpayloads/engine_profile\b", starts=(r'^\{"schema": ?"peerpath\.engine_profile/1"',), belongs=r"^\{"
    ),
    payload="engine_profile",
    argv=("--limit", "600"),
    duration_s=60,
    timeout_s=660,
    engine_runs=True,
    choices=(
        Choice("concurrency", "Requests at once", "1", pattern=r"[1-9][0-9]{0,2}"),
        Choice("steps", "Steps to record", "24", pattern=r"[1-9][0-9]{0,2}"),
        Choice(
            "url",
            "Endpoint",
            hint="as that machine reaches it; empty: ports 30000 and 8000 there",
            pattern=r"(?:https?:\/\/)?[\w.:\[\]\/\-]{1,200}",
        ),
        Choice("model", "Model", hint="its name in requests; empty: the first that it lists"),
        Choice("key-file", "Key file", hint="a path there, if the endpoint wants a key"),
        Choice("trace-dir", "Trace folder", hint="there; empty: what the engine’s command line says"),
    ),
    about=(
        "Starts the engine’s torch profiler in the middle of real requests and reads the trace of rank 0"
        " where it lies: per step the time in NCCL, attention, MoE and other kernels, and the gaps between"
        " them. SGLang can always be asked; vLLM only when it was started with --profiler-config. The"
        " profiler slows the engine while it records, and is switched off at the end, also after a cancel."
    ),
)
