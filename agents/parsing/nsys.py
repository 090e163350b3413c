"""Nsight Systems' reports: cuda_gpu_kern_sum and cuda_gpu_trace, as `nsys stats` prints them.

CSV heads (nsys 2023-2026): "Time (%)","Total Time (ns)","Instances",…,"Name" and "Start (ns)","Duration
(ns)",CorrId,GrdX,…,Device,Ctx,GreenCtx,Strm,Name; the column form of the first has the same heads and thousands
separators. Other summaries (API calls, memory, NVTX) look alike and are ignored.
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agents.facts.bench import KernelTimes
from agents.parsing import steps
from agents.parsing.kernels import Kernel
from agents.parsing.steps import Steps

_LINE_CAP = 8000
_US = {"ns": 1e-3, "us": 1.0, "μs": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6, "sec": 1e6}
_QUOTE = re.compile(r"^(?:\s{0,4}[>|]\s?)+")
_DIGITS = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_CSV_HEADS = ('"Time', "Time (%)", "Time(%)", "Start (", '"Start (')
_UNIT = re.compile(r"\((\w{1,3})\)")
_COLUMN_HEAD = re.compile(r"^\s*Time ?\(%\)\s+Total Time \((?P<unit>\w{1,3})\)\s+Instances\s.{0,200}\bName\s*$")
_COLUMN_ROW = re.compile(
    r"^\s*\d{1,3}\.\d\s+(?P<total>[\d,]{1,20})\s+(?P<count>[\d,]{1,12})(?:\s+[\d,]+(?:\.\d+)?){3,5}\s+(?P<name>\S.*)$"
)


@dataclass(frozen=True, slots=True)
class Report:
    """steps None: a sum over kernels has neither steps nor gaps. device: the GPU of the steps."""

    times: KernelTimes
    lines: tuple[int, ...]
    steps: Steps | None = None
    device: str = ""
    devices: int = 0


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    name: str
    us: float
    count: int = 1
    start_us: float | None = None
    device: str = ""


def parse(text: str) -> Report | None:
    """The trace if there is one, else the sum; None without both."""
    rows = _rows(text)
    traced = [row for row in rows if row.start_us is not None]
    if traced:
        return _trace(traced)
    if not rows:
        return None
    times = steps.times([(row.name, row.us, row.count) for row in rows])
    return Report(times, tuple(row.line for row in rows))


def _trace(rows: Sequence[_Row]) -> Report:
    by_device = Counter(row.device for row in rows)
    device = max(by_device, key=lambda name: by_device[name])
    kernels = [
        Kernel(row.name, row.start_us, row.us) for row in rows if row.device == device and row.start_us is not None
    ]
    times = steps.times([(row.name, row.us, 1) for row in rows])
    lines = (rows[0].line, rows[-1].line)
    return Report(times, lines, steps.read(kernels), device, len(by_device))


def _rows(text: str) -> list[_Row]:
    """Rows below a known head, up to the first other line."""
    rows: list[_Row] = []
    head: _Head | None = None
    unit = 0.0
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw[:_LINE_CAP], count=1) if raw[:1] in " >|" else raw[:_LINE_CAP]
        columns = _COLUMN_HEAD.match(line)
        if columns:
            head, unit = None, _US.get(columns["unit"], 0.0)
        elif line.startswith(_CSV_HEADS):
            head, unit = _csv_head(line), 0.0
        elif head:
            row = _csv_row(head, line, number)
            rows += [row] if row else []
            head = head if row or not line.strip() else None
        elif unit and (row := _column_row(line, unit, number)):
            rows.append(row)
        elif unit and line.strip() and not set(line.strip()) <= {"-", " "}:
            unit = 0.0
    return rows


@dataclass(frozen=True, slots=True)
class _Head:
    """The positions of the columns that are read, and the units of two of them."""

    width: int
    took: int
    took_us: float
    count: int
    start: int
    start_us: float
    device: int


def _csv_head(line: str) -> _Head | None:
    """None for a table that is not about kernels."""
    names = _cells(line)
    took = next((n for n in names if n.startswith(("Total Time", "Duration"))), "")
    start = next((n for n in names if n.startswith("Start")), "")
    summed, traced = "Instances" in names, bool(start) and {"CorrId", "Device"} <= set(names)
    took_us, start_us = _unit(took), _unit(start)
    if names[-1:] != ["Name"] or not took_us or not (summed or (traced and start_us)):
        return None
    return _Head(
        len(names),
        names.index(took),
        took_us,
        names.index("Instances") if summed else -1,
        names.index(start) if traced else -1,
        start_us,
        names.index("Device") if traced else -1,
    )


def _csv_row(head: _Head, line: str, number: int) -> _Row | None:
    cells = _cells(line) if '"' in line else line.split(",")
    if len(cells) != head.width:
        return None
    took = _figure(cells[head.took])
    if took is None:
        return None
    name, us = cells[-1].strip(), took * head.took_us
    if head.count >= 0:
        count = _figure(cells[head.count])
        return None if count is None else _Row(number, name, us, int(count))
    start = _figure(cells[head.start])
    if start is None:
        return None
    return _Row(number, name, us, 1, start * head.start_us, cells[head.device].strip())


def _column_row(line: str, unit: float, number: int) -> _Row | None:
    match = _COLUMN_ROW.match(line)
    if match is None:
        return None
    total, count = _figure(match["total"]), _figure(match["count"])
    if total is None or count is None:
        return None
    return _Row(number, match["name"].strip(), total * unit, int(count))


def _figure(cell: str) -> float | None:
    digits = cell.replace(",", "").strip()
    return float(digits) if _DIGITS.fullmatch(digits) else None


def _unit(column: str) -> float:
    """Microseconds per unit of the column; 0 for an unknown unit."""
    unit = _UNIT.search(column)
    return _US.get(unit[1], 0.0) if unit else 0.0


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []
