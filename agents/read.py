"""Raw bytes in, readings out: the collector's framed text, or whatever a person pasted.

This is a parse boundary: a parser that raises makes its own facts unreadable and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.benchmarks import all_benchmarks
from agents.facts import View
from agents.framing import Frame, Header, clean, looks_like_bundle, read_bundle
from agents.probe import Output, Probe, Readings
from agents.probes import all_probes
from agents.recognise import Part, recognise

LineRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Item:
    """One output that was understood.

    reader: probe or benchmark id. lines: first and last line within the raw text, for a paste; the
    readings' line numbers count there too. frame: the collector's frame it came from; the readings'
    line numbers then count within the frame's own output.
    """

    reader: str
    title: str
    view: View
    readings: Readings
    lines: LineRange | None = None
    frame: Frame | None = None
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class RawReading:
    """unrecognised: line ranges of the raw text nobody could place. notes: for the person who gave
    it, in words: edited, cut off, of another role."""

    items: tuple[Item, ...] = ()
    unrecognised: tuple[LineRange, ...] = ()
    header: Header | None = None
    notes: tuple[str, ...] = ()


def read_raw(raw: bytes, *, role: View | None, hint: str = "") -> RawReading:
    """Everything that can be read from one paste, upload or file. It raises nothing on any bytes.

    role: whose output it is, when known. hint: a probe id or file name that says what it may be.
    """
    if looks_like_bundle(raw):
        return _read_frames(raw, role)
    text = clean(raw)
    found = recognise(text, role, hint)
    lines = text.split("\n")
    items = tuple(_read_part(part, lines) for part in found.parts)
    return RawReading(items, tuple(found.unrecognised))


def read_output(reader: str, output: Output) -> Readings:
    """What the parser of this probe or benchmark reads; nothing for a reader that no longer exists."""
    known = all_probes().get(reader) or all_benchmarks().get(reader)
    if known is None:
        return ()
    try:
        return known.parse(output)
    except Exception as error:  # the parse boundary: one broken parser must not stop the others
        reason = f"its parser failed: {type(error).__name__}: {error}"[:300]
        return tuple(fact.unreadable(reason) for fact in known.supplies)


def read_frame(frame: Frame) -> Item:
    return Item(
        frame.probe_id,
        title_of(frame.probe_id),
        _view_of(frame.probe_id),
        read_output(frame.probe_id, frame.output),
        frame=frame,
    )


def title_of(reader: str) -> str:
    """The reader's title for people; its id when it no longer exists."""
    known = all_probes().get(reader) or all_benchmarks().get(reader)
    return known.title if known else reader


def _view_of(reader: str) -> View:
    probe: Probe | None = all_probes().get(reader)
    return probe.role if probe else View.GUEST


def _read_part(part: Part, lines: list[str]) -> Item:
    output = Output("\n".join(lines[part.first - 1 : part.last]), "", None, -1)
    shift = part.first - 1
    readings = tuple(
        replace(reading, lines=tuple(number + shift for number in reading.lines))
        for reading in read_output(part.reader, output)
    )
    span = (part.first, part.last)
    return Item(
        part.reader,
        title_of(part.reader),
        _view_of(part.reader),
        readings,
        span,
        confidence=part.confidence,
    )


def _read_frames(raw: bytes, role: View | None) -> RawReading:
    bundle = read_bundle(raw)
    return RawReading(tuple(read_frame(frame) for frame in bundle.frames), (), bundle.header)
