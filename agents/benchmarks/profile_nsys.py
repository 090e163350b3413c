"""Reports of Nsight Systems: the sum over kernels, or the trace of each (nsys stats -r cuda_gpu_kern_sum,
cuda_gpu_trace).

A sum holds neither steps nor gaps, so it only gives the kernels' times. In a trace only exact repetition shows the
step.
"""

from dataclasses import replace

from agents.benchmark import Benchmark
from agents.facts import Reading
from agents.facts.bench import KERNEL_TIMES, PROFILE, Profile
from agents.parsing import nsys
from agents.parsing.nsys import Report
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    report = nsys.parse(output.stdout)
    if report is None:
        facts = (PROFILE, KERNEL_TIMES)
        if output.tool_missing:
            return tuple(fact.unsupported("nsys is not installed") for fact in facts)
        return tuple(fact.unreadable("no row of a report over GPU kernels") for fact in facts)
    times = KERNEL_TIMES.known(report.times, lines=_first_and_last(report.lines))
    return (_profile(report), times)


def _profile(report: Report) -> Reading[Profile]:
    if report.steps is None:
        why = "a sum over kernels tells neither steps nor gaps: `nsys stats -r cuda_gpu_trace` does"
        return PROFILE.not_run(why, lines=_first_and_last(report.lines))
    if report.steps.profile is None:
        return PROFILE.not_run(report.steps.why, lines=_first_and_last(report.lines))
    how = f"{report.steps.how}, on {report.device or 'the GPU'}, one of {report.devices}"
    return replace(PROFILE.known(report.steps.profile, lines=_first_and_last(report.lines)), detail=how)


def _first_and_last(lines: tuple[int, ...]) -> tuple[int, ...]:
    return lines if len(lines) <= 16 else (lines[0], lines[-1])


benchmark = Benchmark(
    __name__,
    title="Nsight Systems report",
    supplies=(PROFILE, KERNEL_TIMES),
    parse=parse,
    signature=Signature(
        typed=r"\bnsys\s+(?:stats|profile)\b",
        starts=(
            r"^\s*\"?Time ?\(%\)\"?[,\s]+\"?Total Time \(\w+\)\"?[,\s]+\"?Instances",
            r"^\"?Start \(\w+\)\"?,\"?Duration \(\w+\)\"?,\"?CorrId",
            r"^\s*\*\* CUDA GPU (?:Kernel Summary|Trace) \(cuda_gpu_",
        ),
        belongs=(r"^\s*\"?\d[\d.,]*\"?[,\s]|^\s*-{3,}|^\s*\"?(?:Time|Start) ?\(|^Processing \[|^\s*\*\* CUDA GPU"),
    ),
)
