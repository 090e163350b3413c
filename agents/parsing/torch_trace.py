"""A trace of the torch profiler (Chrome trace JSON, Kineto; PyTorch 2.11).

{"traceEvents": [{"ph": "X", "cat": "kernel", "name": …, "ts": µs, "dur": µs, "args": {"device": 0}}, …]};
cat gpu_memcpy and gpu_memset are GPU work too, gpu_user_annotation holds record_function ranges on the
GPU's time line. ts and dur are microseconds, also where displayTimeUnit says ms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.facts.bench import KernelTimes
from agents.parsing import json_text, steps
from agents.parsing.json_text import at, number
from agents.parsing.kernels import Kernel
from agents.parsing.steps import Mark, Steps

_WORK = frozenset(("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"))

_GPU = _WORK | {"gpu_user_annotation"}


@dataclass(frozen=True, slots=True)
class Trace:
    """steps: of the device with most kernels. devices: all that have kernels. rank None: not said."""

    steps: Steps
    times: KernelTimes
    device: str
    devices: tuple[str, ...]
    line: int
    rank: int | None = None


def parse(text: str) -> Trace | None:
    """None when the text holds no trace; a trace without GPU work has no devices."""
    for line, value in json_text.values(text):
        events = value if isinstance(value, list) else at(value, "traceEvents")
        if isinstance(events, list) and any(_is_event(event) for event in events[:200]):
            rank = number(at(value, "distributedInfo", "rank"))
            return _read(events, line, None if rank is None else int(rank))
    return None


def _is_event(event: Any) -> bool:
    return isinstance(event, dict) and "ph" in event and "name" in event


def _read(events: list[Any], line: int, rank: int | None) -> Trace:
    work: dict[str, list[Kernel]] = defaultdict(list)
    marks: dict[tuple[str, str], list[Mark]] = defaultdict(list)
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        category = event.get("cat")
        if category not in _GPU:
            continue
        start, took = number(event.get("ts")), number(event.get("dur"))
        name = str(event.get("name", ""))
        device = str(at(event, "args", "device") if category in _WORK else event.get("pid"))
        if start is None or took is None or took < 0:
            continue
        if category in _WORK:
            work[device].append(Kernel(name, start, took))
        elif steps.is_mark(name):
            marks[device, str(event.get("tid"))].append(Mark(name, start))
    return trace_of(work, marks, line, rank)


def trace_of(
    work: Mapping[str, list[Kernel]],
    marks: Mapping[tuple[str, str], list[Mark]],
    line: int,
    rank: int | None,
) -> Trace:
    """work: by device. marks: by device and the stream they stand on."""
    rows = [(k.name, k.duration_us, 1) for found in work.values() for k in found]
    device = max(work, key=lambda d: len(work[d]), default="")
    best = max((m for (d, _), m in marks.items() if d == device), key=len, default=[])
    found = steps.read(work.get(device, []), best)
    return Trace(found, steps.times(rows), device, tuple(sorted(work)), line, rank)
