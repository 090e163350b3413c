"""Our own scripts and the lists they print, pasted in place of what they were to find out.

A script holds commands and words that readers know, and says nothing of the machine: it is blanked before
anything is recognised in it. A terminal's log may hold both, so only these lines are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

COLLECTOR = "# Peerpath collector."
LAST = '{ main "$@"; exit; }'
NOTE = (
    "This is the script itself, or the list of its commands, not what it prints. Run it without --list, "
    "and give what comes."
)
_LISTED = re.compile(r"(?:host|guest)\.[a-z0-9_]+  \S.* \(at most \d+ s\)")
_UNDER_IT = "    "


def blanked(lines: list[str]) -> tuple[list[str], bool]:
    """The lines with our own ones empty, and whether there were any. Their number stays."""
    own = {*_script(lines), *_list(lines)}
    return [("" if n in own else line) for n, line in enumerate(lines)], bool(own)


def _script(lines: list[str]) -> Iterator[int]:
    """To its last line, or to the end where that is cut off."""
    inside = False
    for n, line in enumerate(lines):
        inside = inside or line.startswith(COLLECTOR)
        if inside:
            yield n
        if line.rstrip() == LAST:
            inside = False


def _list(lines: list[str]) -> Iterator[int]:
    inside = False
    for n, line in enumerate(lines):
        inside = bool(_LISTED.fullmatch(line.rstrip())) or (inside and line.startswith(_UNDER_IT))
        if inside:
            yield n
