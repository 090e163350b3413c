"""The lines of a text that hold something, by number.

A blank line is the cheapest that anybody can send: half a million of them are half a megabyte. Parsers to
which it says nothing look for it here, and not with each of their patterns.
"""

from __future__ import annotations

from collections.abc import Iterator


def nonblank_lines(text: str) -> Iterator[tuple[int, str]]:
    """(1-based number, line as it stands) of each line that is not blank."""
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line and not line.isspace())
