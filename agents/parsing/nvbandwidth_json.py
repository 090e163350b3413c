"""nvbandwidth -j (NVIDIA/nvbandwidth 0.8, json_output.cpp).

{"nvbandwidth": {"testcases": [{"name", "status", "bandwidth_description", "bandwidth_matrix": [["N/A",
"264.3"], …], "sum"}]}}; cells are strings. A device-to-device test without peer access is "Waived" and has
no matrix, so a machine without P2P shows no number at all.
"""

import re
from dataclasses import dataclass
from typing import Any

from agents.facts.bench import PairMatrix
from agents.parsing import json_text
from agents.parsing.json_text import at, number

_UNIT = re.compile(r"\((GB/s|ns|us)\)\s*$")


@dataclass(frozen=True, slots=True)
class Report:
    """waived, failed: names of the device-to-device tests without a matrix. sum_off: tests whose sum differs from the
    sum of their cells."""

    matrices: tuple[PairMatrix, ...]
    waived: tuple[str, ...]
    failed: tuple[str, ...]
    sum_off: tuple[str, ...]
    line: int


def parse(text: str) -> Report | None:
    """None when no object is nvbandwidth's."""
    for line, value in json_text.values(text):
        tests = at(value, "nvbandwidth", "testcases")
        if isinstance(tests, list):
            return _report([test for test in tests if isinstance(test, dict)], line)
    return None


def _report(tests: list[dict[str, Any]], line: int) -> Report:
    """Leaves out tests between host and device, and tests with one figure for all GPUs."""
    matrices: list[PairMatrix] = []
    waived, failed, sum_off = [], [], []
    for test in tests:
        name, status = str(test.get("name", "")), str(test.get("status", ""))
        if not name.startswith("device_to_device") or "local" in name:
            continue
        matrix = _matrix(name, test)
        if status.lower() == "waived":
            waived.append(name)
        elif matrix is None:
            failed.append(f"{name}: {status or 'no matrix'}")
        elif not _adds_up(matrix, test):
            sum_off.append(name)
        else:
            matrices.append(matrix)
    return Report(tuple(matrices), tuple(waived), tuple(failed), tuple(sum_off), line)


def _matrix(name: str, test: dict[str, Any]) -> PairMatrix | None:
    rows = test.get("bandwidth_matrix")
    unit = _UNIT.search(str(test.get("bandwidth_description", "(GB/s)")))
    if not isinstance(rows, list) or not rows or unit is None:
        return None
    if not all(isinstance(row, list) and len(row) == len(rows) for row in rows):
        return None
    scale = 1e-3 if unit[1] == "ns" else 1.0
    values = tuple(tuple(None if (cell := number(c)) is None else cell * scale for c in row) for row in rows)
    matrix_unit = "us" if unit[1] == "ns" else unit[1]
    return PairMatrix(name, matrix_unit, tuple(str(i) for i in range(len(rows))), values)


def _adds_up(matrix: PairMatrix, test: dict[str, Any]) -> bool:
    """Whether the printed sum matches the cells within 5 %, or there is no sum."""
    total = number(test.get("sum"))
    if total is None or matrix.unit != "GB/s":
        return True
    cells = sum(cell for row in matrix.values for cell in row if cell is not None)
    return abs(cells - total) <= 0.05 * max(cells, total, 1e-9)
