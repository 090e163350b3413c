"""`nvidia-smi topo -p2p <cap>`: a matrix of what the driver allows between GPUs.

Format: a header row of GPU names (often with a leading TAB and ANSI underline), one row a GPU, then a
legend. Pastes collapse TABs, quote lines, wrap, or hold a single row; whatever rows are there count.
"""

from __future__ import annotations

import re

from agents.facts.p2p import P2pCode, P2pMatrix

_GPU = re.compile(r"GPU\d+")
_QUOTE = re.compile(r"^(?:[>|]\s?)+")
_CODES = {code.value for code in P2pCode}


def parse(text: str) -> tuple[P2pMatrix, tuple[int, ...], tuple[str, ...]] | None:
    """The matrix, the 1-based lines it stands on, and what is missing; None when there is no row."""
    header: list[str] = []
    rows: dict[str, list[P2pCode | None]] = {}
    lines: list[int] = []
    for number, raw in enumerate(text.splitlines(), 1):
        cells = _QUOTE.sub("", raw).split()
        if len(cells) >= 2 and all(_GPU.fullmatch(cell) for cell in cells):
            header = header or cells
        elif len(cells) >= 2 and _GPU.fullmatch(cells[0]) and _is_row(cells[1:]):
            rows[cells[0]] = [None if cell == "X" else P2pCode(cell) for cell in cells[1:]]
            lines.append(number)
    if not rows:
        return None
    gpus = header or [f"GPU{i}" for i in range(max(len(rows), *map(len, rows.values())))]
    width = len(gpus)
    codes = tuple(tuple((rows.get(gpu, []) + [None] * width)[:width]) for gpu in gpus)
    return P2pMatrix(tuple(gpus), codes), tuple(lines), _missing(gpus, rows)


def _is_row(cells: list[str]) -> bool:
    return all(cell == "X" or cell in _CODES for cell in cells)


def _missing(gpus: list[str], rows: dict[str, list[P2pCode | None]]) -> tuple[str, ...]:
    absent = [f"row {gpu}" for gpu in gpus if gpu not in rows]
    short = [f"row {gpu} is cut" for gpu in gpus if gpu in rows and len(rows[gpu]) < len(gpus)]
    return tuple(absent + short)
