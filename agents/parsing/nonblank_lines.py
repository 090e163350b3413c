"""The numbered lines of a text that are not blank.

Blank lines are cheap to send: half a million of them are half a megabyte. Parsers skip them here, before they try
their patterns.
"""

from collections.abc import Iterator


def nonblank_lines(text: str) -> Iterator[tuple[int, str]]:
    """(1-based number, line as it stands) of each line that is not blank."""
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line and not line.isspace())
