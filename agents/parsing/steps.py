"""Finds where an engine's step begins and ends in a recording of GPU kernels.

There are two ways: marks of the engine or the profiler on the GPU's own time line, or a sequence of kernels that
repeats exactly from the first to the last, three times or more. The sequence has at least _FEWEST_KERNELS kernels and
holds work that a step does once (sampling, embedding) and no layer repeats. Otherwise the step is unknown; the parser
does not guess.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agents.facts.bench import KernelTimes, Profile
from agents.parsing import kernels as kinds
from agents.parsing.kernels import Kernel, Kind

_FEWEST_KERNELS = 10
_FEWEST_STEPS = 3
# vLLM: execute_context_0(0)_generation_4(4), before execute_new_0_cached_4; the first figure counts
# requests in prefill. torch.profiler: ProfilerStep#7.
_MARK = re.compile(
    r"^(?:ProfilerStep#\d+|execute_(?:context|new)_(?P<prefill>\d+)(?:\(\d+\))?_(?:generation|cached)_\d+.*)$"
)
Window = tuple[float, float, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """An annotation on the GPU's time line."""

    name: str
    start_us: float


@dataclass(frozen=True, slots=True)
class Steps:
    """profile None: why gives the reason. how: which of the two ways, in words."""

    profile: Profile | None
    how: str = ""
    why: str = ""


def read(kernels: Sequence[Kernel], marks: Sequence[Mark] = ()) -> Steps:
    """The mean step of one GPU. Both sequences may be in any order."""
    ordered = sorted(kernels, key=lambda kernel: kernel.start_us)
    windows = _marked_windows(sorted(marks, key=lambda mark: mark.start_us))
    count = sum(steps for _, _, steps in windows)
    if count >= _FEWEST_STEPS:
        return Steps(_mean_profile(ordered, windows), f"{count} steps by marks on the GPU's time line")
    repeated = _repeated_window(ordered)
    if isinstance(repeated, tuple):
        first, last, steps = repeated
        how = f"{steps} repeats of the same sequence of kernels"
        return Steps(_mean_profile(ordered, [(first, last, steps)]), how)
    return Steps(None, why=repeated)


def _marked_windows(marks: Sequence[Mark]) -> list[Window]:
    """The windows from mark to mark, without steps that hold prefill. The last mark has no end."""
    windows: list[Window] = []
    for this, following in pairwise(marks):
        match = _MARK.match(this.name)
        if match is None or int(match["prefill"] or 0) > 0 or following.start_us <= this.start_us:
            continue
        if windows and windows[-1][1] == this.start_us:
            first, _, steps = windows.pop()
            windows.append((first, following.start_us, steps + 1))
        else:
            windows.append((this.start_us, following.start_us, 1))
    return windows


def is_mark(name: str) -> bool:
    return bool(_MARK.match(name[:200]))


def _repeated_window(ordered: Sequence[Kernel]) -> Window | str:
    """The window of the whole repeats from the first kernel on, or why there are none."""
    names = [kernel.name for kernel in ordered]
    length = kinds.period(names)
    if length is None:
        return "no marks of steps, and the kernels do not repeat exactly: no step can be told apart"
    if length < _FEWEST_KERNELS:
        return f"the kernels repeat every {length}: too few for a step of an engine"
    if not any(kinds.is_once_per_step(name) for name in set(names[:length])):
        return "what repeats may be a layer: no sampling or embedding kernel is in it"
    steps = (len(names) - 1) // length
    if steps < _FEWEST_STEPS - 1:
        return "too few repeats"
    return ordered[0].start_us, ordered[steps * length].start_us, steps


def _mean_profile(ordered: Sequence[Kernel], windows: Sequence[Window]) -> Profile:
    starts = [kernel.start_us for kernel in ordered]
    longest = max((kernel.duration_us for kernel in ordered), default=0.0)
    total = [0.0] * 5
    count = sum(steps for _, _, steps in windows)
    for first, last, steps in windows:
        inside = ordered[bisect_left(starts, first - longest) : bisect_left(starts, last)]
        profile = kinds.profile(inside, first, last, steps)
        parts = (profile.nccl_ms, profile.attention_ms, profile.moe_ms, profile.other_ms, profile.gaps_ms)
        total = [sum_ms + part * steps / count for sum_ms, part in zip(total, parts, strict=True)]
    return Profile(*total)


def times(rows: Sequence[tuple[str, float, int]]) -> KernelTimes:
    """rows: (kernel name, microseconds in total, launches)."""
    spent = dict.fromkeys(Kind, 0.0)
    launches = 0
    for name, us, count in rows:
        spent[kinds.kind_of(name)] += us
        launches += count
    return KernelTimes(
        spent[Kind.COLLECTIVE] / 1000,
        spent[Kind.ATTENTION] / 1000,
        spent[Kind.MOE] / 1000,
        spent[Kind.OTHER] / 1000,
        launches,
    )
