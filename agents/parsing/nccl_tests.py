"""nccl-tests' *_perf programs: text tables and -J reports (nccl-tests 2.19, src/common.cu, util.cu).

A row: size count type [redop] [root], then out-of-place and in-place time, algbw, busbw, #wrong. Times
are µs per operation; with -G they come from a CUDA graph, without from queued calls.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agents.facts.bench import AllReduceResult, AllReduceRow, Timing

_QUOTE = re.compile(r"^(?:\s*[>|]\s?)+")
_NUMBER = r"(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf)"
_SIDE = rf"({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})(?:\s+({_NUMBER}|N/A))?"
_ROW = re.compile(rf"^\s*(\d+)\s+\d+\s+[a-z]\w+\s+(?:[a-z]\w*\s+)?(?:-?\d+\s+)?{_SIDE}(?:\s+{_SIDE})?")
_RANK = re.compile(r"^#\s+Rank\s+(\d+)\s+Group\s+\d+\s+Pid\s+\d+ on\s+\S+ device\s+\d+ \[[^\]]*\] (.+)$")
_SETUP = re.compile(r"^#?\s*nThread \d+ nGpus (\d+) .*")
_GRAPH = re.compile(r"\bgraph: (\d+)")
_HEADER = re.compile(r"^#\s+size\s+count\s+type")
_NAME = re.compile(r"\b(\w+)_perf\b")
_COMMAND_GRAPH = re.compile(r"_perf\b.*\s(?:-G|--cudagraph)[ =]?(\d+)")
_COMMAND_GPUS = re.compile(r"_perf\b.*\s(?:-g|--ngpus)[ =]?(\d+)")
_P2P = re.compile(r"\bNCCL_P2P_(?:DISABLE=([01])|LEVEL=(LOC)\b)")
_AVERAGE = re.compile(r"^# Avg bus bandwidth\s*:\s*([\d.]+)")
# With NCCL_DEBUG the library prints between the rows.
_NCCL_SAYS = re.compile(r"\bNCCL (?:INFO|WARN|version)\b")
_DISABLED = re.compile(r"\bNCCL_P2P_DISABLE set by environment to ([01])\b")
_VERSION = re.compile(r"nccl-library=(\d+)")
# From this bandwidth on, two printed decimals give the ratio of the two bandwidth columns within 1 %.
_PRECISE_GB_PER_S = 1.0


@dataclass
class Table:
    """One run: its heading and the rows below it. collective: "all_reduce", "" if unknown."""

    collective: str = ""
    ranks: int = 0
    graph: int | None = None
    p2p: bool | None = None
    seen_ranks: set[int] = field(default_factory=set)
    gpu_names: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    rows: list[tuple[int, float, bool, int | None]] = field(default_factory=list)
    bus_factor: float = 0.0
    lines: list[int] = field(default_factory=list)

    def result(self) -> AllReduceResult:
        """ranks 0: unknown. Queued calls are no device time: at small sizes they measure the launch."""
        ranks = max(self.ranks, len(self.seen_ranks)) or _ranks_of(self.bus_factor)
        graph = None if self.graph is None else self.graph > 0
        timing = Timing.DEVICE if graph else Timing.UNKNOWN
        rows = tuple(AllReduceRow(s, t, ranks, place, w, graph) for s, t, place, w in self.rows)
        gpus = {"gpus": ", ".join(self.gpu_names)} if self.gpu_names else {}
        return AllReduceResult(rows, self.p2p, timing, {**self.environment, **gpus})


def parse(text: str) -> tuple[Table, ...]:
    """Every table with rows, in order, also those of other collectives."""
    report = _report(text)
    tables = [report] if report else list(_text_tables(text))
    return tuple(table for table in tables if table.rows)


def _text_tables(text: str) -> Iterator[Table]:
    table = Table()
    closed = False  # after a table's end a new heading, command or row starts the next
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw)
        row = _ROW.match(line)
        if not row and _NCCL_SAYS.search(line):
            _read_setting(table, line)
            continue
        if (row and (closed or _starts_over(table, row))) or (table.rows and _opens_table(line)):
            yield table
            table, closed = Table(), False
        if row:
            _add_row(table, row, number)
        else:
            _read_heading(table, line)
            closed = bool(table.rows) and (closed or _ends_table(line))
    yield table


def _read_setting(table: Table, line: str) -> None:
    if disabled := _DISABLED.search(line):
        table.p2p = disabled[1] == "0"


def _ends_table(line: str) -> bool:
    """Whether the line ends a run's rows: its sums, or anything but a comment of the program."""
    return not line.startswith("#") or bool(_AVERAGE.match(line)) or "Out of bounds" in line


def _starts_over(table: Table, row: re.Match[str]) -> bool:
    """Whether another run starts without a heading: within a run sizes only grow."""
    return bool(table.rows) and int(row[1]) < table.rows[-1][0]


def _opens_table(line: str) -> bool:
    named = bool(_NAME.search(line)) and "concluded" not in line
    return named or bool(_HEADER.match(line) or _SETUP.match(line) or "nccl-tests version" in line)


def _read_heading(table: Table, line: str) -> None:
    if name := _NAME.search(line):
        table.collective = name[1]
    if setup := _SETUP.match(line):
        table.ranks = int(setup[1])
    if graph := _GRAPH.search(line) or _COMMAND_GRAPH.search(line):
        table.graph = int(graph[1])
    if gpus := _COMMAND_GPUS.search(line):
        table.ranks = int(gpus[1])
    if p2p := _P2P.search(line):
        table.p2p = p2p[1] == "0"
    if rank := _RANK.match(line):
        table.seen_ranks.add(int(rank[1]))
        table.gpu_names.append(rank[2].strip())
    if version := _VERSION.search(line):
        table.environment["nccl"] = version[1]
    if average := _AVERAGE.match(line):
        table.environment["average_bus_gb_per_s"] = average[1]


def _add_row(table: Table, row: re.Match[str], number: int) -> None:
    table.lines.append(number)
    if float(row[3]) >= _PRECISE_GB_PER_S:
        table.bus_factor = float(row[4]) / float(row[3])
    for time, wrong, in_place in ((row[2], row[5], False), (row[6], row[9], True)):
        time_us = float(time) if time else math.nan
        if math.isfinite(time_us) and time_us > 0:
            table.rows.append((int(row[1]), time_us, in_place, _count(wrong)))


def _ranks_of(bus_factor: float) -> int:
    """busbw is algbw × 2(n-1)/n for an all-reduce; 0 when no whole n fits (doc/PERFORMANCE.md)."""
    if not 0.98 <= bus_factor < 1.99:
        return 0
    ranks = 2 / (2 - bus_factor)
    return round(ranks) if abs(ranks - round(ranks)) <= 0.05 * ranks else 0


def _count(wrong: str | float | None) -> int | None:
    """The number of wrong values; None: not checked (N/A, or no such column)."""
    try:
        return None if wrong is None else int(float(wrong))
    except (ValueError, OverflowError):
        return None


def _report(text: str) -> Table | None:
    """A -J report: args, env, config and results; bools are strings there."""
    start = text.find("{")
    if start < 0 or "_place" not in text:
        return None
    try:
        report = json.loads(text[start : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or not isinstance(report.get("results"), list):
        return None
    table = Table()
    for item in [*_list_of(report, "args"), *_list_of(report, "env")]:
        if isinstance(item, str) and (item.startswith("NCCL_") or "_perf" in item):
            _read_heading(table, item)
    _read_config(table, report)
    for row in report["results"]:
        _add_result(table, row)
    table.lines.append(text.count("\n", 0, start) + 1)
    return table


def _read_config(table: Table, report: dict[str, Any]) -> None:
    config = report.get("config")
    if isinstance(config, dict) and isinstance(config.get("graph"), int):
        table.graph = config["graph"]
    for device in _list_of(report, "devices"):
        if isinstance(device, dict) and isinstance(device.get("rank"), int):
            table.seen_ranks.add(device["rank"])
            table.gpu_names.append(str(device.get("device_info", "")).strip())
    if isinstance(report.get("nccl_version"), int):
        table.environment["nccl"] = str(report["nccl_version"])


def _add_result(table: Table, row: Any) -> None:
    if not isinstance(row, dict) or not isinstance(row.get("size"), int):
        return
    for key, in_place in (("out_of_place", False), ("in_place", True)):
        side = row.get(key)
        time_us = side.get("time") if isinstance(side, dict) else None
        if isinstance(time_us, int | float) and 0 < time_us < math.inf:
            wrong = side.get("nwrong") if isinstance(side, dict) else None
            numeric = isinstance(wrong, str | int | float)
            table.rows.append((row["size"], float(time_us), in_place, _count(wrong) if numeric else None))


def _list_of(report: dict[str, Any], key: str) -> list[Any]:
    value = report.get(key)
    return value if isinstance(value, list) else []
