"""Text that came over a wire: cleaned of what terminals add."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def clean(raw: bytes) -> str:
    """Decodes UTF-8 (invalid bytes replaced) and removes ANSI escapes, CR and NUL.

    Line numbers of the result are those of the raw text: only LF ends a line, and other characters
    that Python's splitlines() would break at become blanks.
    """
    text = _ANSI.sub("", raw.decode("utf-8", "replace"))
    return re.sub(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", " ", text.replace("\r", "").replace("\0", ""))
