"""A text as a sentence."""

import re

_WORD = re.compile(r"[a-z]+(?=[\s,:;’']|$)")


def sentence(text: str) -> str:
    """With a capital at its beginning, unless a name of a program stands there, and a stop at its end."""
    text = text.strip()
    begun = text[:1].upper() + text[1:] if _WORD.match(text) else text
    return begun + ("" if text.endswith((".", "?")) or not text else ".")
