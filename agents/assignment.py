"""Manual assignment: a person says which reader some lines are for, or whose output they are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agents.facts import View
from agents.framing import clean
from agents.probe import Output
from agents.raw_reading import Item, LineRange, RawReading, read_lines, read_output, shift_lines, title_of, view_of


@dataclass(frozen=True, slots=True)
class LineAssignment:
    """lines: first and last. reader: the probe or benchmark that the lines answer; "" where the person named
    only their machine. view: that machine."""

    lines: LineRange
    reader: str = ""
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """Lines taken as this machine's although nothing says so. readers: the readers that took them."""

    lines: LineRange
    view: View
    readers: tuple[str, ...]


def apply_assignments(reading: RawReading, raw: bytes, assignments: Iterable[LineAssignment]) -> RawReading:
    """The reading with the assigned lines read anew; a later assignment overrides an earlier one."""
    text = clean(raw).split("\n")
    for assignment in assignments:
        new = _read_as(text, assignment)
        others = [i for i in reading.items if i.frame or not _overlap(i.lines, assignment.lines)]
        items = sorted([*others, *new.items], key=lambda item: item.lines or (0, 0))
        left = [*_ranges_outside(reading.unrecognised, assignment.lines), *new.unrecognised]
        reading = replace(reading, items=tuple(items), unrecognised=tuple(sorted(left)))
    return reading


def doubts(reading: RawReading) -> tuple[Doubt, ...]:
    """The questions to ask; readers of the same lines share one."""
    result: list[Doubt] = []
    for item in reading.items:
        if not item.unsure or item.lines is None:
            continue
        if result and _overlap(result[-1].lines, item.lines):
            last = result.pop()
            lines = (min(last.lines[0], item.lines[0]), max(last.lines[1], item.lines[1]))
            result.append(Doubt(lines, last.view, (*last.readers, item.reader)))
        else:
            result.append(Doubt(item.lines, item.view, (item.reader,)))
    return tuple(result)


def _read_as(text: Sequence[str], assignment: LineAssignment) -> RawReading:
    first, last = assignment.lines
    if assignment.reader:
        return RawReading((_item(text[first - 1 : last], assignment),))
    above = max(1, first - 1)  # the command line
    masked = [line if above <= n <= last else "" for n, line in enumerate(text[:last], 1)]
    reading = read_lines(masked, assignment.view, "")
    return replace(reading, unrecognised=tuple(_ranges_inside(reading.unrecognised, assignment.lines)))


def _item(lines: Sequence[str], assignment: LineAssignment) -> Item:
    reader = assignment.reader
    readings = read_output(reader, Output("\n".join(lines), "", None, -1))
    shifted = shift_lines(readings, assignment.lines[0] - 1)
    return Item(reader, title_of(reader), view_of(reader), shifted, assignment.lines)


def _overlap(left: LineRange | None, right: LineRange) -> bool:
    return left is not None and left[0] <= right[1] and right[0] <= left[1]


def _ranges_inside(spans: Iterable[LineRange], lines: LineRange) -> Iterator[LineRange]:
    for first, last in spans:
        if _overlap((first, last), lines):
            yield max(first, lines[0]), min(last, lines[1])


def _ranges_outside(spans: Iterable[LineRange], lines: LineRange) -> Iterator[LineRange]:
    for first, last in spans:
        if not _overlap((first, last), lines):
            yield first, last
            continue
        if first < lines[0]:
            yield first, lines[0] - 1
        if last > lines[1]:
            yield lines[1] + 1, last
