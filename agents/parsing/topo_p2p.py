"""`nvidia-smi topo -p2p <cap>`: a matrix of what the driver allows between GPUs.

Format: a header row of GPU names (often with a leading TAB and ANSI underline), one row a GPU, then a legend. Pastes
collapse TABs, quote lines, wrap, join the header to the command, or hold a single row; the rows that are there count,
and the rest is named as missing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.facts.p2p import P2pCode, P2pMatrix
from agents.parsing.smi_value import unquoted

_GPU = re.compile(r"GPU\d{1,3}")
_SEPARATOR = re.compile(r"[\s|`]+")
_CODES = {code.value for code in P2pCode}
# A path type of `topo -m`: its row belongs to the other matrix.
_LINK = re.compile(r"SYS|NODE|PHB|PXB|PIX|SOC|NV\d{1,2}")
_WIDEST = 64
_Cells = list[P2pCode | None]


@dataclass
class _Draft:
    """The state of the parser. closed: rows that a wrapped line cannot continue."""

    header: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    lines: list[int] = field(default_factory=list)
    last: str = ""

    @property
    def width(self) -> int:
        """The most cells of a row; a header with a broken name does not count."""
        return len(self.header) if self.header and _is_sound(self.header) else _WIDEST


def parse(text: str) -> tuple[P2pMatrix, tuple[int, ...], tuple[str, ...]] | None:
    """The matrix, its 1-based lines, and what is missing; None when there is no row.

    Only the first of several matrices counts.
    """
    draft = _Draft()
    for number, raw in enumerate(text.splitlines(), 1):
        words = [word for word in _SEPARATOR.split(unquoted(raw)) if word.strip("-:")]
        if not _take_line(draft, words, number) and draft.rows and draft.header[:1] == words[:1]:
            break
    gpus = _names(draft)
    rows = {gpu: draft.rows[gpu] for gpu in gpus if gpu in draft.rows}
    rows = {gpu: row for gpu, row in rows.items() if _on_diagonal(gpus.index(gpu), row)}
    if not rows:
        return None
    codes = tuple(_cells(rows.get(gpu, []), len(gpus)) for gpu in gpus)
    return P2pMatrix(tuple(gpus), codes), tuple(draft.lines), _missing(gpus, rows)


def _take_line(draft: _Draft, words: list[str], number: int) -> bool:
    """Adds one line to the draft; False when the line is no part of this matrix."""
    if len(words) > 1 and _GPU.fullmatch(words[0]) and _code_count(words[1:]):
        return _take_row(draft, words, number)
    names = _header_words(words)
    if names:
        return _take_header(draft, names)
    if words and draft.last and _code_count(words) == len(words):
        row = draft.rows[draft.last]
        if draft.last not in draft.closed and len(row) + len(words) <= draft.width:
            row.extend(words)
            draft.lines.append(number)
        return True
    draft.last = ""
    return not words


def _take_row(draft: _Draft, words: list[str], number: int) -> bool:
    name, count = words[0], _code_count(words[1:])
    after = words[count + 1] if count + 1 < len(words) else ""
    if name in draft.rows or _LINK.fullmatch(after):
        draft.last = ""
        return False
    draft.rows[name] = words[1 : count + 1]
    draft.lines.append(number)
    draft.last = name
    if after:
        draft.closed.add(name)
    return True


def _take_header(draft: _Draft, names: list[str]) -> bool:
    """Takes the first header; more names before the first row continue it."""
    if draft.rows and draft.header:
        draft.last = ""
        return False
    if not draft.rows:
        draft.header = draft.header + names if names[0] not in draft.header else names
    return True


def _code_count(words: Iterable[str]) -> int:
    """The number of leading words that are codes."""
    count = 0
    for word in words:
        if word != "X" and word not in _CODES:
            break
        count += 1
    return count


def _header_words(words: list[str]) -> list[str]:
    """The GPU names at the end of the line, where only a command comes before them."""
    at = len(words)
    while at and _GPU.fullmatch(words[at - 1]):
        at -= 1
    return words[at:] if at == 0 or "-p2p" in words[:at] else []


def _names(draft: _Draft) -> list[str]:
    """The columns' names: the header, or, without one, GPU0 and so on for the longest row."""
    if draft.header and _is_sound(draft.header):
        return draft.header
    width = max(map(len, draft.rows.values()), default=0)
    return [f"GPU{index}" for index in range(max(width, len(draft.rows)))]


def _is_sound(header: list[str]) -> bool:
    return len(set(header)) == len(header)


def _on_diagonal(index: int, row: list[str]) -> bool:
    """Whether "X" stands only where the row's GPU meets itself, or the row is cut before that."""
    where = [at for at, word in enumerate(row) if word == "X"]
    return where == [index] or (not where and len(row) <= index)


def _cells(row: list[str], width: int) -> tuple[P2pCode | None, ...]:
    cells: _Cells = [None if word == "X" else P2pCode(word) for word in row]
    return tuple((cells + [None] * width)[:width])


def _missing(gpus: list[str], rows: dict[str, list[str]]) -> tuple[str, ...]:
    absent = [f"row {gpu}" for gpu in gpus if gpu not in rows]
    short = [f"row {gpu} is cut" for gpu in gpus if gpu in rows and len(rows[gpu]) < len(gpus)]
    return tuple(absent + short)
