"""Text from a wire without what terminals add, in memory that goes by its size."""

import io
import re
from collections.abc import Iterator

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_BREAKS = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNSEEN = re.compile("[\r\0\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BLOCK = 128 * 2**10  # bytes cleaned at once


def clean(raw: bytes) -> str:
    """Decodes UTF-8 (invalid bytes replaced) and removes ANSI escapes, CR, NUL and Unicode's Bidi_Control characters,
    which could display a name as a different one.

    Line numbers of the result are those of the raw text: only LF ends a line; the other characters at which Python's
    splitlines() breaks become blanks.
    """
    if len(raw) <= _BLOCK:
        return _clean_block(raw)
    text = io.StringIO(newline="\n")
    for block in _blocks(raw):
        text.write(_clean_block(block))
    return text.getvalue()


def _clean_block(raw: bytes) -> str:
    text = _ANSI.sub("", raw.decode("utf-8", "replace"))
    return _BREAKS.sub(" ", _UNSEEN.sub("", text))


def _blocks(raw: bytes) -> Iterator[bytes]:
    """Pieces of at most _BLOCK bytes, so that what cleaning needs in between stays small: whole lines, beyond which
    goes no escape and no character, or a part of a longer line."""
    start = 0
    while start < len(raw):
        end = raw.rfind(b"\n", start, start + _BLOCK) + 1
        if not end:
            end = _cut_in_line(raw, start) if len(raw) - start > _BLOCK else len(raw)
        yield raw[start:end]
        start = end


def _cut_in_line(raw: bytes, start: int) -> int:
    """Before the last escape (not before ESC \\, which ends one), else before a whole character."""
    escape = raw.rfind(b"\x1b", start + 1, start + _BLOCK)
    while escape > start and raw.startswith(b"\\", escape + 1):
        escape = raw.rfind(b"\x1b", start + 1, escape)
    if escape > start:
        return escape
    end = start + _BLOCK
    return next((cut for cut in range(end, end - 4, -1) if raw[cut] & 0xC0 != 0x80), end)
