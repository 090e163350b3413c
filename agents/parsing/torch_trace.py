"""A trace of the torch profiler (Chrome trace JSON, Kineto; PyTorch 2.11).

{"traceEvents": [{"ph": "X", "cat": "kernel", "name": …, "ts": µs, "dur": µs, "args": {"device": 0}}, …]};
cat gpu_memcpy and gpu_memset are GPU work too, gpu_user_annotation holds record_function ranges on the
GPU's time line. ts and dur are microseconds, also where displayTimeUnit says ms.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.facts.bench import KernelTimes
from agents.parsing import json_text, steps
from agents.parsing.json_text import at, number
from agents.parsing.kernels import Kernel
from agents.parsing.steps import Mark, Steps

_WORK = frozenset(("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"))

_HEAD_BYTES = 1 << 20  # the part before the events is a few KiB
_LARGE_BYTES = 8 << 20
_EVENTS = re.compile(r'"traceEvents"\s{0,20}:\s{0,20}\[')
_RANK = re.compile(r'"distributedInfo"\s{0,20}:\s{0,20}\{[^{}]{0,2000}?"rank"\s{0,20}:\s{0,20}(\d{1,6})')
_GPU = _WORK | {"gpu_user_annotation"}


@dataclass(frozen=True, slots=True)
class Trace:
    """steps: of the device with most kernels. devices: all with kernels. rank None: unknown."""

    steps: Steps
    times: KernelTimes
    device: str
    devices: tuple[str, ...]
    line: int
    rank: int | None = None


def looks_like_trace(raw: bytes) -> bool:
    """Whether this is a large file with one JSON object that holds a trace's events."""
    head = raw[:_HEAD_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")
    return len(raw) >= _LARGE_BYTES and head[:1] == b"{" and bool(_EVENTS.search(head.decode("latin-1")))


def parse(text: str) -> Trace | None:
    """The trace, or None; a trace without GPU work has no devices."""
    if len(text) >= _LARGE_BYTES:
        return _read_large_file(text)
    for line, value in json_text.values(text):
        events = value if isinstance(value, list) else at(value, "traceEvents")
        if isinstance(events, list) and any(_is_event(event) for event in events[:200]):
            rank = number(at(value, "distributedInfo", "rank"))
            return _read_events(events, line, None if rank is None else int(rank))
    return None


def _read_large_file(text: str) -> Trace | None:
    """Reads event by event, so that the CPU's events, most of such a file, do not stay in memory."""
    head = _EVENTS.search(text[:_HEAD_BYTES])
    if head is None:
        return None
    rank = _RANK.search(text[:_HEAD_BYTES])
    line = text.count("\n", 0, head.start()) + 1
    try:
        return _read_events(_events(text, head.end()), line, int(rank[1]) if rank else None)
    except (ValueError, IndexError):  # it is cut
        return None


def _events(text: str, start: int) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    between = re.compile(r"[\s,]*")
    while True:
        gap = between.match(text, start)
        start = gap.end() if gap else start
        if text[start] == "]":
            return
        event, start = decoder.raw_decode(text, start)
        yield event


def _is_event(event: Any) -> bool:
    return isinstance(event, dict) and "ph" in event and "name" in event


def _read_events(events: Iterable[Any], line: int, rank: int | None) -> Trace:
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
    work: Mapping[str, list[Kernel]], marks: Mapping[tuple[str, str], list[Mark]], line: int, rank: int | None
) -> Trace:
    """work: by device. marks: by device and stream."""
    rows = [(k.name, k.duration_us, 1) for kernels in work.values() for k in kernels]
    device = max(work, key=lambda d: len(work[d]), default="")
    best = max((m for (d, _), m in marks.items() if d == device), key=len, default=[])
    decode = steps.read(work.get(device, []), best)
    return Trace(decode, steps.times(rows), device, tuple(sorted(work)), line, rank)
