"""A trace of the torch profiler, as vLLM and SGLang write it (VLLM_TORCH_PROFILER_DIR, start_profile).

One rank's view. The step is known only by marks on the GPU's time line or by exact repetition;
else the recording gives its kernels' times and no step.
"""

from __future__ import annotations

from dataclasses import replace

from agents.benchmark import Benchmark
from agents.facts import Reading
from agents.facts.bench import KERNEL_TIMES, PROFILE, KernelTimes, Profile
from agents.parsing import torch_trace
from agents.parsing.torch_trace import Trace
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    found = torch_trace.parse(output.stdout)
    if found is None:
        why = "no whole trace: the file is cut, or it is none"
        return (PROFILE.unreadable(why), KERNEL_TIMES.unreadable(why))
    return readings_of(found)


def readings_of(found: Trace) -> Readings:
    """What a recording of one rank gives: its step if it can be told, and its kernels' times."""
    if not found.devices:
        why = "this trace holds no work of a GPU: CUDA activities were not recorded"
        return (PROFILE.not_run(why), KERNEL_TIMES.not_run(why))
    return (_profile(found), _times(found))


def _profile(found: Trace) -> Reading[Profile]:
    if found.steps.profile is None:
        return PROFILE.not_run(found.steps.why, lines=(found.line,))
    rank = "" if found.rank is None else f" of rank {found.rank}"
    how = f"{found.steps.how}, on GPU {found.device}{rank}"
    return replace(PROFILE.known(found.steps.profile, lines=(found.line,)), detail=how)


def _times(found: Trace) -> Reading[KernelTimes]:
    return KERNEL_TIMES.known(found.times, lines=(found.line,))


benchmark = Benchmark(
    __name__,
    title="Trace of the torch profiler",
    supplies=(PROFILE, KERNEL_TIMES),
    parse=parse,
    signature=Signature(
        starts=(r"^\{\s*$", r"^\{\s*\"(?:schemaVersion|traceEvents|deviceProperties)\":"),
        belongs=r"^\s*[\]\[{}\"\d-]|^\s*(?:true|false|null|\"?\w+\"?:)",
        score=0.93,
    ),
)
