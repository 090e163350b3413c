"""Serial numbers and asset tags: of GPUs, boards, disks and VMs."""

import re
from collections.abc import Iterator

from agents.redactor import Redactor, Span, clue, spans

_CLUES = (
    clue(
        r"(?i)\b(?:serial(?:[ _]?(?:number|no|short))?|asset[ _]?tag)\"?"
        r"[ \t]*(?:[:=]|\bis\b)[ \t]*\"?(?P<serial>[0-9A-Z][0-9A-Z._/-]{2,63})",
        "serial",
        "asset",
    ),
    # lspci -vv: "Capabilities: [160 v1] Device Serial Number b8-ce-f6-03-00-0a-bc-de"
    clue(r"Device Serial Number (?P<serial>[0-9a-f]{2}(?:-[0-9a-f]{2}){7})\b", "Device Serial"),
    # A disk's stable name ends in its serial number: nvme-SAMSUNG_MZQL23T8HCLS-00A07_S64HNE0T123456
    clue(r"/by-id/(?:ata|nvme|scsi|usb)-\S{1,80}?_(?P<serial>[0-9A-Z]{8,40})(?=-part\d|[\s,:]|$)", "/by-id/"),
)
_CSV_HEADER = clue(r"^[^\n]{0,400}?\b(?:gpu_)?serial\b *(?:,[^\n]{0,400})?$", "serial")
_CSV_ROWS = 64
_NO_SERIAL = re.compile(
    r"(?i)n/a|none|null|not|no|unknown|default|system|chassis|base|to|o\.?e\.?m\.?|number|filled|0+|"
    r"0?123456789|<\S*|tty\w*|pty|unix|stdio|file|socket|mon:stdio|console\w*"
)


def find(text: str) -> Iterator[Span]:
    for start, end in spans(_CLUES, text, "serial"):
        if not _NO_SERIAL.fullmatch(text[start:end]):
            yield start, end
    for header in _CSV_HEADER.matches(text):
        names = [cell.strip() for cell in header[0].split(",")]
        column = next((n for n, name in enumerate(names) if name in ("serial", "gpu_serial")), None)
        if column is not None and len(names) > 1:
            yield from _column(text, header.end() + 1, column, len(names))


def _column(text: str, start: int, column: int, columns: int) -> Iterator[Span]:
    """The serials below a header of nvidia-smi --query-gpu=…,serial --format=csv."""
    for _ in range(_CSV_ROWS):
        end = text.find("\n", start)
        end = end if end >= 0 else len(text)
        cell = _cell(text[start:end], column, columns)
        if cell is None:
            return
        span = (start + cell[0], start + cell[1])
        if not _NO_SERIAL.fullmatch(text[slice(*span)].strip("[]")):
            yield span
        start = end + 1


def _cell(row: str, column: int, columns: int) -> Span | None:
    """The span of the cell's text in a row of that many columns."""
    cells = row.split(",", columns)
    if len(cells) != columns or not cells[column].strip():
        return None
    cell = cells[column]
    start = sum(len(c) + 1 for c in cells[:column]) + len(cell) - len(cell.lstrip())
    return start, start + len(cell.strip())


redactor = Redactor(__name__, find, spreads=True)
