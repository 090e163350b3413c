"""`nvidia-smi topo -m`: path types between GPUs and NICs, and each GPU's processors and NUMA node.

Format: a header that starts with a TAB (columns GPU0 …, NIC0 …, then CPU Affinity, NUMA Affinity, GPU
NUMA ID as the driver has them), TAB-separated rows with padding blanks, NIC rows without affinity,
`Legend:` and `NIC Legend:`. Drivers before 525 name NIC columns by device ("mlx5_0").
"""

import re
from dataclasses import dataclass, field

from agents.facts.p2p import P2pCode, TopologyMatrix
from agents.parsing.smi_value import unquoted

_GPU = re.compile(r"GPU\d{1,3}")
_DEVICE = re.compile(r"(?:GPU|NIC)\d{1,3}|[a-z][a-z0-9]{2,10}(?:_[a-z0-9_]{1,12}|\d{1,3}(?:s\d{1,3})?)")
# SOC and PSB: drivers before 384.
_LINK = re.compile(r"SYS|NODE|PHB|PXB|PIX|SOC|PSB|NV\d{1,2}|X")
_AFFINITY = re.compile(r"N/A|\d[\d,-]*")
_HEAD_WORDS = frozenset(("CPU", "NUMA", "GPU", "ID", "Affinity"))
_SEPARATOR = re.compile(r"[\s|`]+")
_LEGEND = re.compile(r"^\s*(NIC\d{1,3}): (\S{1,60})\s*$")
_PEER_CODES = frozenset(code.value for code in P2pCode)
_CUT = ("...", "…")

# The farthest first (nvidia-smi's legend); NVLink is last, with fewer links before more.
_FAR = ("SYS", "SOC", "NODE", "PHB", "PXB", "PIX", "PSB")


@dataclass
class _Row:
    links: list[str]
    affinity: list[str]
    line: int
    closed: bool = False


@dataclass
class _Draft:
    """The state of the parser. tail: the header's words after the devices. broken: an unreadable line stood where the
    rest of a wrapped line was due."""

    header: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    head_open: bool = False
    broken: bool = False
    rows: dict[str, _Row] = field(default_factory=dict)
    open_row: _Row | None = None
    nics: list[tuple[str, str]] = field(default_factory=list)

    @property
    def affinity_columns(self) -> int:
        return sum(word in ("Affinity", "ID") for word in self.tail)

    @property
    def cells_after(self) -> int:
        """How many cells may follow a row's links; three where the header does not show it."""
        return self.affinity_columns or 3


@dataclass(frozen=True, slots=True)
class Topology:
    """lines: of the rows. missing: for Reading.missing. numa: device -> its printed cell."""

    matrix: TopologyMatrix
    lines: tuple[int, ...]
    missing: tuple[str, ...]
    numa: tuple[tuple[str, str], ...]


def parse(text: str) -> Topology | None:
    """None without a row with named columns. Only the first of several matrices counts."""
    draft = _Draft()
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw or raw.isspace():
            draft.open_row = None
            continue
        line = unquoted(raw)
        legend = _LEGEND.match(line)
        if legend:
            draft.nics.append((legend[1], legend[2]))
            continue
        words = [word for word in _SEPARATOR.split(line) if word.strip("-:")]
        if _starts_again(draft, words) or _is_of_p2p(words):
            break
        _take_line(draft, words, number)
    return _topology(draft)


def worst(links: list[str]) -> str | None:
    """The farthest of these path types; of NVLinks the one with the fewest links."""
    ranked = [link for far in _FAR for link in links if link == far]
    nvlinks = sorted((link for link in links if link.startswith("NV")), key=lambda n: int(n[2:]))
    return next(iter(ranked + nvlinks), None)


def _starts_again(draft: _Draft, words: list[str]) -> bool:
    """Whether a second matrix begins here."""
    return len(words) > 1 and words[0] in draft.rows and bool(_LINK.fullmatch(words[1]))


def _is_of_p2p(words: list[str]) -> bool:
    """Whether this is a row of `topo -p2p`, another matrix with the same header."""
    after = next((word for word in words[1:] if not _LINK.fullmatch(word)), "")
    return bool(words) and bool(_GPU.fullmatch(words[0])) and after in _PEER_CODES


def _take_line(draft: _Draft, words: list[str], number: int) -> None:
    if len(words) > 1 and _DEVICE.fullmatch(words[0]) and _LINK.fullmatch(words[1]):
        draft.rows[words[0]] = draft.open_row = _split_row(words[1:], number, draft.cells_after)
        draft.head_open = False
    elif draft.open_row is not None and words and not draft.open_row.closed:
        _continue_row(draft, draft.open_row, words)
    elif not draft.rows and words:
        _take_header(draft, words)
    elif not words:
        draft.open_row = None


def _split_row(words: list[str], number: int, cells_after: int) -> _Row:
    """Splits a row into links and affinity cells; any other word closes the row. A cut mark is no link."""
    row = _Row([], [], number)
    for word in words:
        if _LINK.fullmatch(word) and not row.affinity:
            row.links.append(word)
        elif _AFFINITY.fullmatch(word) and len(row.affinity) < cells_after:
            row.affinity.append(word)
        else:
            row.closed = True
            break
    return row


def _continue_row(draft: _Draft, row: _Row, words: list[str]) -> None:
    """Adds the rest of a wrapped row: a line of links and affinity cells alone."""
    cells = [*row.links, *row.affinity]
    if row.affinity and (words[0][0] in "-," or row.affinity[-1][-1] in "-,"):
        cells[-1] += words[0]  # the break fell into a list of CPUs
        words = words[1:]
    rest = _split_row([*cells, *words], row.line, draft.cells_after)
    short = len(row.links) < len(draft.header) or len(row.affinity) < draft.affinity_columns
    if rest.closed or not short:
        if short:
            draft.broken = True
            (row.affinity or row.links).pop()  # "NV1" may be the beginning of "NV18"
        draft.open_row = None
        return
    row.links, row.affinity = rest.links, rest.affinity


def _take_header(draft: _Draft, words: list[str]) -> None:
    """Takes the device names up to the affinity columns, after any other words on the line."""
    if draft.head_open and _goes_on(draft, words):
        draft.header += [word for word in words if _DEVICE.fullmatch(word)]
        rest = [word for word in words if not _DEVICE.fullmatch(word)]
        if draft.tail and rest and draft.tail[-1] + rest[0] in _HEAD_WORDS:
            draft.tail[-1] += rest.pop(0)
        draft.tail += rest
        return
    start = next((at for at, word in enumerate(words) if _GPU.fullmatch(word)), len(words))
    end = start
    while end < len(words) and _DEVICE.fullmatch(words[end]):
        end += 1
    tail = words[end:]
    draft.broken = draft.broken or (draft.head_open and end == start)
    draft.head_open = False
    if end > start and (not tail or tail[0] in _HEAD_WORDS or tail[0] in _CUT or tail == ["C"]):
        draft.header, draft.tail, draft.head_open = words[start:end], tail, True
        draft.broken = False


def _goes_on(draft: _Draft, words: list[str]) -> bool:
    """Whether the line continues the wrapped header; the break may have cut its first word."""
    known = [bool(_DEVICE.fullmatch(word)) or word in _HEAD_WORDS for word in words]
    return all(known[1:]) and any(known) and not set(words) & set(draft.header)


def _topology(draft: _Draft) -> Topology | None:
    devices = draft.header if _is_sound(draft) else _names_of_rows(draft)
    rows = {name: row for name, row in draft.rows.items() if name in devices}
    rows = {n: row for n, row in rows.items() if _on_diagonal(devices.index(n), row)}
    if not rows:
        return None
    width = len(devices)
    _drop_half_cells(rows, width, draft.affinity_columns)
    links = tuple(tuple((_links(rows.get(n)) + [None] * width)[:width]) for n in devices)
    has_affinity = any(row.affinity for row in rows.values())
    cpus = tuple(_cell(rows.get(name), 0) for name in devices) if has_affinity else ()
    numa = tuple(_cell(rows.get(name), 1) for name in devices) if has_affinity else ()
    matrix = TopologyMatrix(tuple(devices), links, cpus, numa, tuple(draft.nics))
    printed = tuple((n, row.affinity[1]) for n, row in rows.items() if len(row.affinity) > 1)
    lines = tuple(sorted(row.line for row in rows.values()))
    return Topology(matrix, lines, _missing(draft, devices, rows), printed)


def _drop_half_cells(rows: dict[str, _Row], width: int, affinity_columns: int) -> None:
    """Drops the last cell of a cut row: "NV1" may be the start of "NV18", and "0-3" of "0-31"."""
    for name, row in rows.items():
        ends_in_links = len(row.links) < width or (affinity_columns and not row.affinity and _GPU.fullmatch(name))
        if ends_in_links and row.links[-1:] and row.links[-1].startswith("NV"):
            row.links.pop()
        elif len(row.affinity) < affinity_columns and row.affinity and _GPU.fullmatch(name):
            row.affinity.pop()


def _is_sound(draft: _Draft) -> bool:
    """Whether the header names every row and column: a break inside a name spoils it."""
    widest = max((len(row.links) for row in draft.rows.values()), default=0)
    names = set(draft.header)
    return len(names) == len(draft.header) >= widest and names.issuperset(draft.rows)


def _names_of_rows(draft: _Draft) -> list[str]:
    """The rows' own names as column names, without a header, as far as "X" shows the columns."""
    names: list[str] = []
    for name, row in draft.rows.items():
        if row.links[len(names) : len(names) + 1] != ["X"]:
            break
        names.append(name)
    return names


def _on_diagonal(index: int, row: _Row) -> bool:
    where = [at for at, link in enumerate(row.links) if link == "X"]
    return where == [index] or (not where and len(row.links) <= index)


def _links(row: _Row | None) -> list[str | None]:
    return [None if link == "X" else link for link in row.links] if row else []


def _cell(row: _Row | None, at: int) -> str | None:
    cell = row.affinity[at] if row and len(row.affinity) > at else "N/A"
    return None if cell == "N/A" else cell


def _missing(draft: _Draft, devices: list[str], rows: dict[str, _Row]) -> tuple[str, ...]:
    width = len(devices)
    gaps = [f"row {name}" for name in devices if name not in rows]
    gaps += [f"row {name} is cut" for name, row in rows.items() if len(row.links) < width]
    if not _is_sound(draft):
        return (*gaps, "the header row")
    if draft.tail and draft.tail[0] in _CUT:
        return (*gaps, f"columns after {devices[-1]}")
    if draft.broken:
        return (*gaps, "what a wrapped line held")
    short = (len(r.affinity) < draft.affinity_columns for n, r in rows.items() if _GPU.fullmatch(n))
    return (*gaps, "affinity of some GPUs") if any(short) else tuple(gaps)
