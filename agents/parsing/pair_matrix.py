"""Matrices between GPUs: cuda-samples' p2pBandwidthLatencyTest and nvbandwidth 0.4-0.8.

p2pBandwidthLatencyTest: a title line with its unit, a `D\\D` (bandwidth) or `GPU`/`CPU` (latency) header, one row a
GPU; it prints latency twice, for the device (`GPU`) and for the host (`CPU`); only the device's is kept. nvbandwidth:
"memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", a header of numbers, one row a GPU, N/A on the diagonal. Tables
between CPU and GPUs are not between GPUs.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.facts.bench import PairMatrix

_QUOTE = re.compile(r"^(?:\s*[>|]\s?)+")
_TITLE = re.compile(
    r"^\s*(?:(?P<access>P2P Connectivity Matrix)"
    r"|(?P<sample>(?:\w+ )?P2P=(?P<p2p>Enabled|Disabled) [\w() ]*Matrix) \((?P<unit>GB/s|us)\)"
    r"|(?P<nv>(?:memcpy|memory) .*\(row\).*\(column\).*) \((?P<nvunit>GB/s|us|ns)\))\s*$"
)
_RUNNING = re.compile(r"^Running (\w+)\.?")
_HEADER = re.compile(r"^\s*(?:(?P<kind>D\\D|GPU|CPU)\s+)?(?P<ids>\d+(?:\s+\d+)*)\s*$")
# The pattern requires blanks between cells: with optional blanks a long number could split in 2**n ways.
_ROW = re.compile(r"^\s*(\d+)((?:\s+(?:\d+(?:\.\d+)?|N/A|nan|inf))+)\s*$", re.I)
_ACCESS = re.compile(r"^Device=(\d+) (CAN|CANNOT) Access Peer Device=(\d+)")
_START = re.compile(r"\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]")
_BETWEEN_GPUS = re.compile(r"GPU\(row\).*GPU\(column\)")


@dataclass
class _Table:
    title: str
    unit: str
    p2p: bool | None
    gpus: list[str] = field(default_factory=list)
    rows: dict[str, list[float | None]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)


Found = tuple[tuple[PairMatrix, ...], tuple[int, ...], tuple[str, ...]]


def parse(text: str) -> Found:
    """The matrices, their lines, and what is missing."""
    tables = list(_tables(text))
    full = [t for t in tables if t.rows]
    matrices = tuple(_matrix(t) for t in full)
    lines = tuple(n for t in full for n in t.lines)
    missing = tuple(f"row {gpu} of {t.title}" for t in full for gpu in t.gpus if gpu not in t.rows)
    return matrices, lines, missing


def _tables(text: str) -> Iterator[_Table]:
    table: _Table | None = None
    access = _Table("Can access peer", "access", None)
    running = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw)
        if _START.search(line):
            yield access
            access = _Table("Can access peer", "access", None)
        elif peer := _ACCESS.match(line):
            _add_access(access, peer, number)
        elif step := _RUNNING.match(line):
            running = step[1]
        elif title := _TITLE.match(line):
            if table:
                yield table
            table = _titled_table(title, running)
        elif table and not _take_line(table, line, number):
            yield table
            table = None
    if table:
        yield table
    yield access


def _titled_table(title: re.Match[str], running: str) -> _Table | None:
    if title["access"]:
        return _Table(title["access"], "access", None)
    if title["sample"]:
        return _Table(title["sample"], title["unit"], title["p2p"] == "Enabled")
    if not _BETWEEN_GPUS.search(title["nv"]) or title["nvunit"] == "ns":
        return None
    return _Table(running or title["nv"], title["nvunit"], None)


def _take_line(table: _Table, line: str, number: int) -> bool:
    """Adds a header or row to the table; False when the table ended above this line."""
    header = _HEADER.match(line)
    if header and not table.gpus:
        table.gpus = header["ids"].split()
        table.lines.append(number)
        return True
    if header and header["kind"] == "CPU":
        return False
    row = _ROW.match(line)
    if row and table.gpus and row[1] not in table.rows:
        table.rows[row[1]] = [_value(cell) for cell in row[2].split()]
        table.lines.append(number)
        return True
    return not table.rows or (len(table.rows) < len(table.gpus) and not line.strip())


def _value(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _add_access(table: _Table, peer: re.Match[str], number: int) -> None:
    for gpu in (peer[1], peer[3]):
        if gpu not in table.gpus:
            table.gpus.append(gpu)
    row = table.rows.setdefault(peer[1], [])
    column = table.gpus.index(peer[3])
    row += [None] * (column + 1 - len(row))
    row[column] = float(peer[2] == "CAN")
    table.lines.append(number)


def _matrix(table: _Table) -> PairMatrix:
    width = len(table.gpus)
    blank: list[float | None] = [None] * width
    values = tuple(tuple((table.rows.get(gpu, []) + blank)[:width]) for gpu in table.gpus)
    return PairMatrix(table.title, table.unit, tuple(table.gpus), values, table.p2p)
