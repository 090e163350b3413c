"""A trace of the torch profiler, as vLLM and SGLang write it (VLLM_TORCH_PROFILER_DIR, start_profile).

One rank's view. Marks on the GPU's time line or exact repetition show the step; without them the recording only gives
its kernels' times.
"""

from dataclasses import replace

from agents.benchmark import Benchmark
from agents.facts import Reading
from agents.facts.bench import KERNEL_TIMES, PROFILE, KernelTimes, Profile
from agents.parsing import torch_trace
from agents.parsing.torch_trace import Trace
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    trace = torch_trace.parse(output.stdout)
    if trace is None:
        why = "no whole trace: the file is cut, or it is none"
        return (PROFILE.unreadable(why), KERNEL_TIMES.unreadable(why))
    return readings_of(trace)


def readings_of(trace: Trace) -> Readings:
    """The readings of one rank's recording: its step, if it can be determined, and its kernels' times."""
    if not trace.devices:
        why = "this trace holds no work of a GPU: CUDA activities were not recorded"
        return (PROFILE.not_run(why), KERNEL_TIMES.not_run(why))
    return (_profile(trace), _times(trace))


def _profile(trace: Trace) -> Reading[Profile]:
    if trace.steps.profile is None:
        return PROFILE.not_run(trace.steps.why, lines=(trace.line,))
    rank = "" if trace.rank is None else f" of rank {trace.rank}"
    how = f"{trace.steps.how}, on GPU {trace.device}{rank}"
    return replace(PROFILE.known(trace.steps.profile, lines=(trace.line,)), detail=how)


def _times(trace: Trace) -> Reading[KernelTimes]:
    return KERNEL_TIMES.known(trace.times, lines=(trace.line,))


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
