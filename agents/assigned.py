"""What a person says of lines: which reader they are for, or whose output they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agents.facts import View
from agents.framing import clean
from agents.probe import Output
from agents.read import Item, LineRange, RawReading, moved, read_lines, read_output, title_of, view_of


@dataclass(frozen=True, slots=True)
class Said:
    """lines: first and last. reader: the probe or benchmark they answer; "" where only their machine
    was named: view."""

    lines: LineRange
    reader: str = ""
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """Lines that were taken as this machine's although nothing says so. readers: who read them."""

    lines: LineRange
    view: View
    readers: tuple[str, ...]


def reassigned(found: RawReading, raw: bytes, said: Iterable[Said]) -> RawReading:
    """What was found, with these lines read as a person said; later sayings go above earlier ones."""
    text = clean(raw).split("\n")
    for one in said:
        new = _read_as(text, one)
        kept = [i for i in found.items if i.frame or not _overlap(i.lines, one.lines)]
        items = sorted([*kept, *new.items], key=lambda item: item.lines or (0, 0))
        left = [*_without(found.unrecognised, one.lines), *new.unrecognised]
        found = replace(found, items=tuple(items), unrecognised=tuple(sorted(left)))
    return found


def doubts(found: RawReading) -> tuple[Doubt, ...]:
    """The questions to ask; readers of the same lines share one."""
    result: list[Doubt] = []
    for item in found.items:
        if not item.unsure or item.lines is None:
            continue
        if result and _overlap(result[-1].lines, item.lines):
            last = result.pop()
            lines = (min(last.lines[0], item.lines[0]), max(last.lines[1], item.lines[1]))
            result.append(Doubt(lines, last.view, (*last.readers, item.reader)))
        else:
            result.append(Doubt(item.lines, item.view, (item.reader,)))
    return tuple(result)


def _read_as(text: Sequence[str], said: Said) -> RawReading:
    first, last = said.lines
    if said.reader:
        return RawReading((_item(text[first - 1 : last], said),))
    above = max(1, first - 1)  # what was typed
    masked = [line if above <= n <= last else "" for n, line in enumerate(text[:last], 1)]
    found = read_lines(masked, said.view, "")
    return replace(found, unrecognised=tuple(_inside(found.unrecognised, said.lines)))


def _item(lines: Sequence[str], said: Said) -> Item:
    found = read_output(said.reader, Output("\n".join(lines), "", None, -1))
    readings = moved(found, said.lines[0] - 1)
    title, view = title_of(said.reader), view_of(said.reader)
    return Item(said.reader, title, view, readings, said.lines)


def _overlap(one: LineRange | None, other: LineRange) -> bool:
    return one is not None and one[0] <= other[1] and other[0] <= one[1]


def _inside(spans: Iterable[LineRange], lines: LineRange) -> Iterator[LineRange]:
    for first, last in spans:
        if _overlap((first, last), lines):
            yield max(first, lines[0]), min(last, lines[1])


def _without(spans: Iterable[LineRange], lines: LineRange) -> Iterator[LineRange]:
    for first, last in spans:
        if not _overlap((first, last), lines):
            yield first, last
            continue
        if first < lines[0]:
            yield first, lines[0] - 1
        if last > lines[1]:
            yield lines[1] + 1, last
