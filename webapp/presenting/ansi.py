"""Colours that a terminal would show, as pieces of text with names of style classes; nothing else of
what a terminal obeys is kept.

Source: ECMA-48 (5th edition, 8.3.117 SGR); the 256 colours as xterm numbers them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.framing import clean

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
BRIGHT = 8  # the bright colours are numbered 8 to 15
_CUBE = (0, 95, 135, 175, 215, 255)
# The sixteen, as xterm draws them (red, green, blue).
_SIXTEEN = tuple(
    tuple(bytes.fromhex(line)[at : at + 3])
    for line in ("000000cd000000cd00cdcd000000eecd00cd00cdcde5e5e5", "7f7f7fff000000ff00ffff005c5cffff00ff00ffffffffff")
    for at in range(0, 24, 3)
)


@dataclass(frozen=True, slots=True)
class Style:
    """ink, paper: one of the sixteen colours, None for the text's own."""

    ink: int | None = None
    paper: int | None = None
    bold: bool = False
    dim: bool = False
    underlined: bool = False

    @property
    def classes(self) -> str:
        flags = {"a-bold": self.bold, "a-dim": self.dim, "a-line": self.underlined}
        names = [name for name, on in flags.items() if on]
        names += [f"ink-{self.ink}"] if self.ink is not None else []
        return " ".join(names + ([f"paper-{self.paper}"] if self.paper is not None else []))


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    classes: str


PLAIN = Style()


def pieces(line: bytes) -> tuple[Piece, ...]:
    """One line in its colours; its text is what `clean` leaves of it. Colours end with the line."""
    parts = _SGR.split(line.decode("utf-8", "replace"))
    style, texts = PLAIN, []
    for index, part in enumerate(parts):
        if index % 2:
            style = _style_after(style, part)
        elif text := clean(part.encode()):
            texts.append(Piece(text, style.classes))
    return tuple(texts)


def _style_after(style: Style, parameters: str) -> Style:
    codes = [int(code[:3] or 0) for code in re.split("[;:]", parameters)]
    while codes:
        code = codes.pop(0)
        extended = code in (38, 48)
        style = _with_colour(style, code - 8, _extended_colour(codes)) if extended else _with_code(style, code)
    return style


def _with_code(style: Style, code: int) -> Style:
    if code in _CHANGES:
        return _CHANGES[code](style)
    for base in (30, 40):
        for first, shift in ((base, 0), (base + 60, BRIGHT)):
            if first <= code < first + 8:
                return _with_colour(style, base, code - first + shift)
    return style


def _with_colour(style: Style, base: int, colour: int | None) -> Style:
    return replace(style, ink=colour) if base == 30 else replace(style, paper=colour)


_CHANGES: dict[int, Callable[[Style], Style]] = {
    0: lambda style: PLAIN,
    1: lambda style: replace(style, bold=True),
    2: lambda style: replace(style, dim=True),
    4: lambda style: replace(style, underlined=True),
    22: lambda style: replace(style, bold=False, dim=False),
    24: lambda style: replace(style, underlined=False),
    39: lambda style: replace(style, ink=None),
    49: lambda style: replace(style, paper=None),
}


def _extended_colour(codes: list[int]) -> int | None:
    """Takes its parameters ("5;N" or "2;R;G;B") from the list; the nearest of the sixteen."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:
        return _of_256(codes.pop(0))
    if kind == 2 and len(codes) >= 3:
        return _nearest_colour((codes.pop(0), codes.pop(0), codes.pop(0)))
    return None


def _of_256(number: int) -> int:
    if number < 16:
        return number
    if number >= 232:
        grey = 8 + 10 * (min(number, 255) - 232)
        return _nearest_colour((grey, grey, grey))
    red, rest = divmod(number - 16, 36)
    return _nearest_colour((_CUBE[red], _CUBE[rest // 6], _CUBE[rest % 6]))


def _nearest_colour(colour: tuple[int, int, int]) -> int:
    def distance(index: int) -> int:
        return sum((a - b) ** 2 for a, b in zip(colour, _SIXTEEN[index], strict=True))

    return min(range(16), key=distance)
