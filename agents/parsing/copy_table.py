"""Copy measurements as people write them down: lines, tables, key=value, any column order.

Each row's own arithmetic decides what "KB" means: 12 KB in 13.7 µs at 0.90 GB/s is true only for 1024 bytes a KB
(GB/s is 10⁹ bytes a second). A row that fits neither unit within 5 % is rejected. A row with a single figure takes
the usual unit of the text's other rows, else 1024.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agents.facts.bench import CopyPath, CopyResult, CopyRow, RejectedRow, Timing
from agents.parsing.nonblank_lines import nonblank_lines

TOLERANCE = 0.05

_QUOTE = re.compile(r"^(?:\s*>\s?)+")
_NUMBER = r"(?<!\d)(\d+(?:[ ,]\d{3})*(?:\.\d+)?|\d+,\d{1,2})"
_RATE = re.compile(rf"{_NUMBER}\s*([KMGT]i?)(?:B/s|Bps|B/sec)", re.I)
_TIME = re.compile(rf"{_NUMBER}\s*(ns|us|µs|μs|usec|microseconds?|ms|msec|sec|s)\b")
_SIZE = re.compile(rf"{_NUMBER}[ -]?(?:([KMG])(i)?B?|(bytes?|B))\b(?!/s)")
_ARROW = r"(?:->|→|⇒|=>|↔|<->|to|and|,)"
_PAIR = re.compile(
    rf"\b(?:GPU|G|cuda:|device)[ _]?(\d+)\b.{{0,40}}?{_ARROW}\s*(?:(?:GPU|G|cuda:|device)[ _]?)?0*(\d+)\b"
    r"|\bGPUs? (\d+) ?(?:->|→|to|and|-) ?(\d+)\b",
    re.I,
)
_SAME = re.compile(
    r"\bsame[- ](?:GPU|device|card)|(?:inside|within)(?: \w+){0,3}? (?:one|a single|the same) GPU|intra-GPU", re.I
)
_STAGED = re.compile(r"\bstaged\b|\bby hand\b|via (?:pinned|the host|host|CPU)|through (?:the )?(?:host|CPU)", re.I)
_H2D = re.compile(r"\bH2D\b|host[- ]*(?:to|->|→)[- ]*(?:device|GPU)|CPU ?(?:->|→|to) ?GPU", re.I)
_D2H = re.compile(r"\bD2H\b|(?:device|GPU)[- ]*(?:to|->|→)[- ]*(?:host|CPU)", re.I)
_DEVICE = re.compile(
    r"CUDA[- ]?graph|in a graph|device[- ]tim|GPU time|(?:CUDA|by|with) events?\b|event[- ]timed", re.I
)
_SYNC = re.compile(r"synchroni[sz]e|\bsync(?:ed)?\b|host[- ]timed|perf_counter", re.I)
_TOTAL = re.compile(r"^\W*(?:aggregate|sum|total|average|avg|mean)\b", re.I)
_CLAUSE = re.compile(r";\s+(?=[a-zA-Z])")
_COLUMNS = (
    ("rate", re.compile(r"[KMGT]i?B/s|[GM]Bps|bandwidth|\bbw\b|throughput", re.I)),
    ("time", re.compile(r"\btime|latency|duration|\b[mnuµμ]s\b|usec", re.I)),
    ("size", re.compile(r"\bsize|bytes|message|transfer", re.I)),
)
_SEPARATORS = tuple(re.compile(separator) for separator in (r"\t+", r"\s{2,}", r"[;,]\s*"))
_FIGURE = re.compile(r"(?<![\w:])\d+(?:\.\d+)?\s*(?:[KMG]i?B|[uµμm]s)\b|[=:]\s*\d")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_KEY = re.compile(r"\b(size|bytes|nbytes|time|latency|t|bw|bandwidth|rate)\s*[=:]\s*(?=\d)", re.I)
_BARE_KEY = re.compile(_KEY.pattern + r"\d+(?:\.\d+)?(?![\w.]|\s*(?:[KMGTknmuµμ]i?[Bs]|bytes|B)\b)", re.I)
_DEFAULT_UNITS = {"rate": "GB/s", "time": "us", "size": "B"}
_TIME_US = {"n": 1e-3, "u": 1.0, "µ": 1.0, "μ": 1.0, "mi": 1.0, "m": 1e3, "s": 1e6}
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True, slots=True)
class _Size:
    """number × 1024^power or 1000^power; base None: the letters do not decide it."""

    number: float
    power: int = 0
    base: int | None = None

    def in_bytes(self, base: int) -> float:
        return self.number * float((self.base or base) ** self.power)


@dataclass(frozen=True, slots=True)
class _Figures:
    """One row as printed. rate_step: half of the last digit printed, in GB/s."""

    size: _Size | None = None
    time_us: float | None = None
    rate: float | None = None
    rate_step: float = 0.0


@dataclass(frozen=True, slots=True)
class _Context:
    """The context from headings above the rows. size: from a heading that holds the size of all rows below."""

    path: CopyPath | None = None
    source: str = "?"
    destination: str = "?"
    timing: Timing = Timing.UNKNOWN
    size: _Size | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    text: str
    figures: _Figures
    context: _Context


def parse(text: str) -> CopyResult:
    rows = list(_rows(text))
    units = Counter(base for row in rows if (base := _shown_base(row.figures)))
    usual = units.most_common(1)[0][0] if units else 1024
    sound = (_sound_row(row, usual) for row in rows)
    rejected = (_rejected_row(row, usual) for row in rows)
    return CopyResult(tuple(k for k in sound if k), tuple(r for r in rejected if r), {})


def _rows(text: str) -> Iterator[_Row]:
    columns: list[tuple[str, str]] = []
    context = _Context()
    for number, line in _clauses(text):
        # Units and headings have letters; below a header bare numbers are rows.
        if len(line) < 2 or not (columns or _LETTER.search(line)):
            continue
        header = _header(line)
        figures = _figures(line, [] if header else columns)
        if context.size and not figures.size:
            figures = replace(figures, size=context.size)
        measured = bool(figures.time_us or figures.rate)
        if header:
            columns = header
            context = _with_context(line, context)
        elif figures.size and measured and not _TOTAL.match(line):
            yield _Row(number, line[:200], figures, _with_context(line, context, keep_size=True))
        elif line and not measured:
            context = _heading(line, context)


def _clauses(text: str) -> Iterator[tuple[int, str]]:
    """Unquoted lines by number; each clause after a semicolon counts as a line of its own."""
    for number, raw in nonblank_lines(text):
        for clause in _CLAUSE.split(_QUOTE.sub("", raw[:2000])):
            yield number, clause.strip()


def _heading(line: str, context: _Context) -> _Context:
    """The context after a line between rows: it holds for the rows below, and a new subject replaces the old one."""
    own = _with_context(line, _Context())
    if own == _Context():
        return context
    size = _figures(line, []).size
    same_subject = own.path is None and own.source == "?"
    return _with_context(line, replace(context if same_subject else own, size=size))


def _with_context(line: str, context: _Context, keep_size: bool = False) -> _Context:
    pair = _PAIR.search(line)
    path = _path(line, pair)
    if pair:
        source, destination = [int(g) for g in pair.groups() if g is not None]
        context = replace(context, source=str(source), destination=str(destination))
    if path:
        context = replace(context, path=path)
        if path is CopyPath.SAME and not pair:
            context = replace(context, source="?", destination="?")
    timing = _timing(line)
    size = context.size if keep_size else _figures(line, []).size
    return replace(context, timing=timing or context.timing, size=size)


def _path(line: str, pair: re.Match[str] | None) -> CopyPath | None:
    for pattern, path in (
        (_SAME, CopyPath.SAME),
        (_STAGED, CopyPath.STAGED),
        (_H2D, CopyPath.HOST_TO_DEVICE),
        (_D2H, CopyPath.DEVICE_TO_HOST),
    ):
        if pattern.search(line):
            return path
    if not pair:
        return None
    source, destination = [int(g) for g in pair.groups() if g is not None]
    return CopyPath.SAME if source == destination else CopyPath.PEER


def _timing(line: str) -> Timing | None:
    """None when the line names neither timing, or both."""
    device, sync = bool(_DEVICE.search(line)), bool(_SYNC.search(line))
    if device == sync:
        return None
    return Timing.DEVICE if device else Timing.HOST_SYNC


def _cells(line: str) -> list[str]:
    if "|" in line:
        return [cell.strip() for cell in line.strip("|").split("|")]
    for separator in _SEPARATORS:
        parts = separator.split(line)
        if len(parts) > 1:
            return [part.strip() for part in parts]
    return line.split()


def _header(line: str) -> list[tuple[str, str]]:
    """Kind and unit of each column; empty when the line is no header."""
    if not _COLUMNS[-1][1].search(line) or _FIGURE.search(line):
        return []
    columns = [_column(cell) for cell in _cells(line)]
    kinds = {kind for kind, _ in columns if kind}
    return columns if "size" in kinds and len(kinds) > 1 else []


def _column(cell: str) -> tuple[str, str]:
    for kind, pattern in _COLUMNS:
        if pattern.search(cell):
            unit = re.search(r"[KMGT]i?B/s|[KMG]i?B\b|\b[mnuµμ]s\b|\bbytes\b", cell)
            return kind, unit[0] if unit else _DEFAULT_UNITS[kind]
    return "", ""


def _figures(line: str, columns: list[tuple[str, str]]) -> _Figures:
    """The first size, time and rate of a line; bare numbers take the unit of their column or key."""
    if not _DIGIT.search(line):
        return _Figures()
    spelled = _with_key_units(_with_column_units(line, columns) if columns else line)
    rate = _RATE.search(spelled)
    rest = _RATE.sub(" ", spelled)
    time = _TIME.search(rest)
    size = _SIZE.search(_TIME.sub(" ", rest))
    per_s, step = _gb_per_s(rate) if rate else (None, 0.0)
    return _Figures(_size(size) if size else None, _time_us(time) if time else None, per_s, step)


def _with_column_units(line: str, columns: list[tuple[str, str]]) -> str:
    cells = _cells(line)
    if len(cells) != len(columns):
        return line
    bare = re.compile(rf"^~?{_NUMBER}$")
    return " | ".join(
        f"{cell} {unit}" if unit and bare.match(cell) else cell for cell, (_, unit) in zip(cells, columns, strict=True)
    )


def _with_key_units(line: str) -> str:
    """Adds units: "size=12288 time=13.7" becomes "size=12288 B time=13.7 us"."""

    def spelled(match: re.Match[str]) -> str:
        key = match[1].lower()
        kind = "size" if "size" in key or "byte" in key else "time" if key[0] in "tl" else "rate"
        return f"{match[0]} {_DEFAULT_UNITS[kind]}"

    return _BARE_KEY.sub(spelled, line)


def _to_float(number: str) -> float:
    """Commas part thousands ("4,194,304") unless one or two digits follow ("13,7")."""
    if re.fullmatch(r"\d+,\d{1,2}", number):
        return float(number.replace(",", "."))
    return float(re.sub(r"[ ,]", "", number))


def _gb_per_s(match: re.Match[str]) -> tuple[float, float]:
    prefix = match[2]
    base = 1024 if prefix.lower().endswith("i") else 1000
    factor = base ** _POWERS[prefix[0].upper()] / 1e9
    decimals = len(re.split(r"[.,]", match[1])[1]) if re.search(r"[.,]\d{1,2}$|\.", match[1]) else 0
    return _to_float(match[1]) * factor, 0.5 * 10.0**-decimals * factor


def _time_us(match: re.Match[str]) -> float:
    unit = match[2]
    return _to_float(match[1]) * _TIME_US["mi" if unit.startswith("mic") else unit[0]]


def _size(match: re.Match[str]) -> _Size:
    base = 1024 if match[3] else None
    return _Size(_to_float(match[1]), _POWERS[match[2] or ""], base)


def _unit_base(figures: _Figures) -> int | None:
    """The unit that fits the row's arithmetic best; None when none fits."""
    if figures.size is None or not figures.time_us or not figures.rate:
        return None
    best = min((1024, 1000), key=lambda base: _rate_error(figures, base))
    return best if _rate_error(figures, best) <= 1 else None


def _shown_base(figures: _Figures) -> int | None:
    """The unit that a row with ambiguous letters ("KB") showed by its arithmetic."""
    ambiguous = figures.size is not None and figures.size.base is None and figures.size.power > 0
    return _unit_base(figures) if ambiguous else None


def _rate_error(figures: _Figures, base: int) -> float:
    """The error of the printed rate in units of the allowed error; above 1 the row does not fit."""
    computed = _computed_gb_per_s(figures, base)
    allowed = max(TOLERANCE * computed, figures.rate_step)
    return abs(computed - (figures.rate or 0)) / allowed if allowed else 1e9


def _computed_gb_per_s(figures: _Figures, base: int) -> float:
    if figures.size is None or not figures.time_us:
        return 0.0
    return figures.size.in_bytes(base) / figures.time_us / 1e3


def _sound_row(row: _Row, usual: int) -> CopyRow | None:
    figures, context = row.figures, row.context
    both = figures.time_us and figures.rate
    base = _unit_base(figures) if both else usual
    size = figures.size.in_bytes(base) if figures.size and base else 0
    time_us = figures.time_us or (size / figures.rate / 1e3 if figures.rate else 0)
    if size < 1 or not 0 < time_us < 1e12:
        return None
    return CopyRow(
        context.path or CopyPath.PEER,
        context.source,
        context.destination,
        round(size),
        time_us,
        context.timing,
        gb_per_s=figures.rate if figures.rate else size / time_us / 1e3,
        line=row.number,
    )


def _rejected_row(row: _Row, usual: int) -> RejectedRow | None:
    figures = row.figures
    if not (figures.size and figures.time_us and figures.rate) or _unit_base(figures):
        return None
    return RejectedRow(row.number, row.text, _computed_gb_per_s(figures, usual), figures.rate)
