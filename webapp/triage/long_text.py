"""A long output by its lines: a few of them cut out, and words found, without splitting the whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

BLOCK_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class LongText:
    """Lines are counted from 1 and end with LF alone, as `agents.framing.clean` has them.

    before: how many lines end before each block of BLOCK_BYTES. total: how many lines there are; what
    follows the last LF is one when it is not empty.
    """

    raw: bytes
    before: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, raw: bytes) -> LongText:
        starts = range(0, len(raw), BLOCK_BYTES)
        ends = (raw.count(b"\n", start, start + BLOCK_BYTES) for start in starts)
        before = tuple(accumulate(ends, initial=0))
        return cls(raw, before, before[-1] + (not raw.endswith(b"\n") and bool(raw)))

    def cut(self, first: int, count: int) -> list[bytes]:
        """Lines first to first + count - 1, as far as there are; without their LF."""
        found: list[bytes] = []
        start = self._start(max(1, first))
        while len(found) < count and 0 <= start < len(self.raw):
            end = self.raw.find(b"\n", start)
            found.append(self.raw[start : end if end >= 0 else len(self.raw)])
            start = end + 1 if end >= 0 else -1
        return found

    def find(self, words: str) -> Iterator[int]:
        """Numbers of the lines that hold these words as they stand, in any case (of ASCII letters)."""
        raw, sought = self.raw.lower(), words.encode().lower()
        at = raw.find(sought)
        while at >= 0:
            yield self._number(at)
            end = raw.find(b"\n", at)
            at = raw.find(sought, end) if end >= 0 else -1

    def _start(self, number: int) -> int:
        """Where a line starts, in bytes; -1 when there are fewer."""
        if number > self.total:
            return -1
        block = max(0, bisect_left(self.before, number - 1) - 1)
        at, left = block * BLOCK_BYTES, number - 1 - self.before[block]
        for _ in range(left):
            at = self.raw.find(b"\n", at) + 1
        return at

    def _number(self, offset: int) -> int:
        block = offset // BLOCK_BYTES
        return self.before[block] + self.raw.count(b"\n", block * BLOCK_BYTES, offset) + 1
