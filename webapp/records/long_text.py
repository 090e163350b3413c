"""A long output by its lines: a few of them cut out, and words found, block by block."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby, islice

BLOCK_BYTES = 2**20
# A line may be as long as the whole; so many characters of one, and of standard error, are shown.
LONGEST_SHOWN = 20_000


def shortened(text: str) -> str:
    if len(text) <= LONGEST_SHOWN:
        return text
    left = len(text) - LONGEST_SHOWN
    return f"{text[:LONGEST_SHOWN]} … {left:,} more characters: download it to see all"


@dataclass(frozen=True, slots=True)
class Block:
    """lines: how many end in it; what follows the last LF of all ends there. read: its bytes."""

    lines: int
    read: Callable[[], bytes]


def in_blocks(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """How many lines end in each block, and its bytes: at most BLOCK_BYTES, up to the end of a line as
    far as lines are not longer."""
    start = 0
    while start < len(raw):
        end = min(start + BLOCK_BYTES, len(raw))
        if end < len(raw):
            end = raw.rfind(b"\n", start, end) + 1 or end
        unfinished = end == len(raw) and not raw.endswith(b"\n")
        yield raw.count(b"\n", start, end) + unfinished, raw[start:end]
        start = end


@dataclass(frozen=True, slots=True)
class LongText:
    """Lines are counted from 1 and end with LF alone, as `agents.framing.clean` has them.

    before: how many lines end before each block, and before the end of all.
    """

    blocks: tuple[Block, ...]
    before: tuple[int, ...]

    @classmethod
    def of(cls, raw: bytes) -> LongText:
        return cls.of_blocks(Block(lines, partial(bytes, part)) for lines, part in in_blocks(raw))

    @classmethod
    def of_blocks(cls, blocks: Iterable[Block]) -> LongText:
        stored = tuple(blocks)
        return cls(stored, tuple(accumulate((block.lines for block in stored), initial=0)))

    @property
    def total(self) -> int:
        return self.before[-1]

    def cut(self, first: int, count: int) -> list[bytes]:
        """Lines first to first + count - 1, as far as there are; without their LF."""
        at = self._block_of(max(1, first) - 1)
        skipped = max(1, first) - 1 - self.before[at]
        return list(islice(self._lines_from(at), skipped, skipped + count))

    def find(self, words: str, after: int = 0) -> Iterator[int]:
        """Numbers of the lines that hold these words as they stand, in any case (of ASCII letters), from the
        one after `after` on; blocks that end before it are not read."""
        sought, open_line, last, at = words.encode().lower(), b"", after, self._block_of(after)
        for number, block in zip(self.before[at:], self.blocks[at:], strict=False):
            raw = open_line + block.read().lower()
            for offset in _lines_with(sought, raw):
                if number + offset > last:  # a line may go on from the block before
                    last = number + offset
                    yield last
            open_line = raw[max(raw.rfind(b"\n") + 1, len(raw) - len(sought) + 1) :]

    def at(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Lines with these numbers, which ascend and are there; each block that has one is cut once."""
        for _, group in groupby(numbers, partial(bisect_left, self.before)):
            group_numbers = tuple(group)
            lines = self.cut(group_numbers[0], group_numbers[-1] - group_numbers[0] + 1)
            yield from (lines[number - group_numbers[0]] for number in group_numbers)

    def _block_of(self, number: int) -> int:
        """The block in which this line ends, so that the next begins there or later."""
        return max(0, bisect_left(self.before, number) - 1)

    def _lines_from(self, at: int) -> Iterator[bytes]:
        """From the first byte of a block on, to the end of all."""
        open_line: list[bytes] = []
        for block in self.blocks[at:]:
            *whole, rest = block.read().split(b"\n")
            for line in whole:
                yield b"".join((*open_line, line))
                open_line = []
            open_line.append(rest)
        if last := b"".join(open_line):
            yield last


def _lines_with(sought: bytes, raw: bytes) -> Iterator[int]:
    """Once a line, counted from 1."""
    number, counted, at = 1, 0, raw.find(sought)
    while at >= 0:
        number, counted = number + raw.count(b"\n", counted, at), at
        yield number
        end = raw.find(b"\n", at)
        at = raw.find(sought, end) if end >= 0 else -1
