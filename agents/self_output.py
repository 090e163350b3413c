"""The self-output filter: our own scripts and their lists, pasted instead of the scripts' output.

A script holds commands and words that readers know, but says nothing about the machine. So its lines are
blanked before recognition. A terminal's log may hold both, so only these lines are blanked.
"""

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
    """The lines with our own ones emptied, and whether there were any. The number of lines stays."""
    own = {*_script_lines(lines), *_list_lines(lines)}
    return [("" if n in own else line) for n, line in enumerate(lines)], bool(own)


def _script_lines(lines: list[str]) -> Iterator[int]:
    """Up to the script's last line, or to the end of the text where that line is cut off."""
    inside = False
    for n, line in enumerate(lines):
        inside = inside or line.startswith(COLLECTOR)
        if inside:
            yield n
        if line.rstrip() == LAST:
            inside = False


def _list_lines(lines: list[str]) -> Iterator[int]:
    inside = False
    for n, line in enumerate(lines):
        inside = bool(_LISTED.fullmatch(line.rstrip())) or (inside and line.startswith(_UNDER_IT))
        if inside:
            yield n
