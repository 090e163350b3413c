"""Lines that belong to no frame, in one buffer and with their numbers as ranges: a machine may send millions."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.cleaning import clean


@dataclass(frozen=True, slots=True)
class NoiseLine:
    """A line that belongs to no frame."""

    line: int
    text: str


@dataclass(slots=True)
class LineStore:
    """Numbered lines in one buffer: a line costs its bytes and one more, a run of lines 8.

    runs: for each run of consecutive lines, its first line's number and the number of stored lines above it.
    """

    text: bytearray = field(default_factory=bytearray)
    runs: array[int] = field(default_factory=lambda: array("I"))
    _lines: int = 0
    _next: int = 0

    def add(self, number: int, line: bytes) -> None:
        if number != self._next:
            self.runs.extend((number, self._lines))
        self.text += line
        self.text += b"\n"
        self._lines += 1
        self._next = number + 1

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        number, position, run = 0, 0, 0
        for index in range(self._lines):
            if run < len(self.runs) and self.runs[run + 1] == index:
                number, run = self.runs[run], run + 2
            end = self.text.index(b"\n", position)
            yield number, bytes(self.text[position:end])
            number, position = number + 1, end + 1


@dataclass(frozen=True, slots=True)
class Noise:
    """The lines that belong to no frame and are not blank."""

    lines: LineStore = field(default_factory=LineStore)

    def __iter__(self) -> Iterator[NoiseLine]:
        return (NoiseLine(number, clean(line)) for number, line in self.lines if line)

    def add(self, number: int, line: bytes) -> None:
        """Blank lines are kept as line ends: they cost less than the gap they would leave."""
        self.lines.add(number, line if line.strip(b" \t\r>") else b"")
