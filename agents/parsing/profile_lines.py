"""JSON lines of a recording that an engine made of itself (schema peerpath.engine_profile/1).

{"kernel_name": 0, "text": …} once a name; {"kernels": [[name, device, start µs, duration µs], …]};
{"marks": [[text, device, stream, start µs], …]}; {"trace": file, "rank": 0, …} at the end of a file.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from agents.parsing import payload_lines, steps, torch_trace
from agents.parsing.kernels import Kernel
from agents.parsing.payload_lines import PayloadLines, number_of, text_of
from agents.parsing.steps import Mark
from agents.parsing.torch_trace import Trace

SCHEMA = "peerpath.engine_profile/1"


@dataclass(frozen=True, slots=True)
class ProfileLines:
    """trace None: the output holds no kernel."""

    trace: Trace | None
    payload: PayloadLines


def parse(text: str) -> ProfileLines:
    payload = payload_lines.read(text, SCHEMA)
    names: dict[int, str] = {}
    work: dict[str, list[Kernel]] = defaultdict(list)
    marks: dict[tuple[str, str], list[Mark]] = defaultdict(list)
    rank, first = None, 0
    for line, row in payload.rows:
        name = row.get("kernel_name")
        if isinstance(name, int):
            names[name] = text_of(row.get("text", ""))
        for kernel in _rows(row.get("kernels")):
            first = first or line
            _add_kernel(work, names, kernel)
        for mark in _rows(row.get("marks")):
            _add_mark(marks, mark)
        row_rank = number_of(row.get("rank"))
        rank = rank if row_rank is None else int(row_rank)
    trace = torch_trace.trace_of(work, marks, first, rank) if work else None
    return ProfileLines(trace, payload)


def _rows(value: Any) -> list[list[Any]]:
    rows = value if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, list) and len(row) == 4]


def _add_kernel(work: dict[str, list[Kernel]], names: dict[int, str], row: list[Any]) -> None:
    """Adds a kernel, unless its name or its times are missing."""
    name = names.get(row[0]) if isinstance(row[0], int) else None
    start, took = number_of(row[2]), number_of(row[3])
    if name is not None and start is not None and took is not None and took >= 0:
        work[str(row[1])].append(Kernel(name, start, took))


def _add_mark(marks: dict[tuple[str, str], list[Mark]], row: list[Any]) -> None:
    text, start = text_of(row[0]), number_of(row[3])
    if start is not None and steps.is_mark(text):
        marks[str(row[1]), str(row[2])].append(Mark(text, start))
