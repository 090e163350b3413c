"""Raw bytes in, readings out: the collector's framed text, or a person's paste.

All input takes this one path.
"""

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from agents import self_output
from agents.benchmark import all_benchmarks
from agents.facts import View
from agents.framing import Bundle, Frame, Header, clean, looks_like_bundle, read_bundles
from agents.parsing import torch_trace
from agents.probe import Output, Probe, Readings
from agents.probes import all_probes
from agents.recogniser import recognise
from agents.recognition import Part
from agents.safe_parse import parse_safely

LineRange = tuple[int, int]
EDITED = "The text is not as the collector printed it: lines were changed or lost."


@dataclass(frozen=True, slots=True)
class Item:
    """One output with its readings.

    reader: probe or benchmark id. lines: first and last line within the raw text; in a paste the readings' line
    numbers count there too. frame: the collector's frame it came from; the readings' line numbers then count within
    the frame's own output. unsure: the output could be the other machine's.
    """

    reader: str
    title: str
    view: View
    readings: Readings
    lines: LineRange | None = None
    frame: Frame | None = None
    confidence: float = 1.0
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class RawReading:
    """unrecognised: line ranges of the raw text that no reader took. notes: sentences for the person who brought the
    text: edited, cut off, of another role."""

    items: tuple[Item, ...] = ()
    unrecognised: tuple[LineRange, ...] = ()
    header: Header | None = None
    notes: tuple[str, ...] = ()


def read_raw(raw: bytes, *, role: View | None, hint: str = "") -> RawReading:
    """Everything read from one paste, upload or file. It raises nothing on any bytes.

    role: the machine, when known. hint: a probe id or file name that suggests the reader.
    """
    if looks_like_bundle(raw):
        return _read_bundles(raw, role, hint)
    if torch_trace.looks_like_trace(raw):
        return _read_trace(raw)
    return read_lines(clean(raw).split("\n"), role, hint)


def _read_trace(raw: bytes) -> RawReading:
    """Reads a file that is one trace. It skips the search for outputs, which would take longer than the parsing."""
    reader = "bench.profile_trace"
    span = (1, raw.count(b"\n") + 1)
    readings = read_output(reader, Output(clean(raw)))
    return RawReading((Item(reader, title_of(reader), view_of(reader), readings, span),))


def read_lines(lines: list[str], role: View | None, hint: str) -> RawReading:
    """Reads pasted lines without a collector's frames."""
    lines, own = self_output.blanked(lines)
    recognition = recognise("\n".join(lines), role, hint)
    items = tuple(_read_part(part) for part in recognition.parts)
    notes = (self_output.NOTE,) if own and not items else ()
    return RawReading(items, tuple(recognition.unrecognised), notes=notes)


def read_output(reader: str, output: Output) -> Readings:
    """The readings of this probe's or benchmark's parser; none for a reader that no longer exists."""
    known = all_probes().get(reader) or all_benchmarks().get(reader)
    return parse_safely(known, output) if known else ()


def read_frame(frame: Frame, before: int = 0) -> Item:
    """before: the number of lines of the raw text above the frame's answer."""
    first = before + frame.first_line
    return Item(
        frame.probe_id,
        title_of(frame.probe_id),
        view_of(frame.probe_id),
        read_output(frame.probe_id, frame.output),
        (first, first + frame.raw_stdout.count(b"\n")),
        frame=frame,
    )


def title_of(reader: str) -> str:
    """The reader's title for people; its id when it no longer exists."""
    known = all_probes().get(reader) or all_benchmarks().get(reader)
    return known.title if known else reader


def view_of(reader: str) -> View:
    """The machine whose output the reader reads; benchmarks run in the guest."""
    probe: Probe | None = all_probes().get(reader)
    return probe.role if probe else View.GUEST


def shift_lines(readings: Readings, by: int) -> Readings:
    """The same readings for an output that begins `by` lines into another text; values hold line numbers too."""
    return tuple(
        replace(reading, lines=tuple(number + by for number in reading.lines), value=_shift_value(reading.value, by))
        for reading in readings
    )


def _shift_value(value: Any, by: int) -> Any:
    if type(value) is tuple:
        return tuple(_shift_value(part, by) for part in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed: dict[str, Any] = {}
    for part in fields(value):
        old = getattr(value, part.name)
        if part.name == "line" and old:
            changed["line"] = old + by
        elif part.name == "key_lines":
            changed["key_lines"] = {key: line + by for key, line in old.items()}
        elif type(old) is tuple:
            changed[part.name] = _shift_value(old, by)
    return replace(value, **changed) if changed else value


def _read_part(part: Part) -> Item:
    readings = part.readings
    if readings is None:
        output = Output(part.text, "", part.exit_code, -1, truncated=part.cut)
        readings = read_output(part.reader, output)
    readings = shift_lines(readings, part.first - 1)
    span = (part.first, part.last)
    return Item(
        part.reader,
        title_of(part.reader),
        view_of(part.reader),
        readings,
        span,
        confidence=part.confidence,
        unsure=part.unsure,
    )


def _read_bundles(raw: bytes, role: View | None, hint: str) -> RawReading:
    """Reads every collector's answer in the text, and the pasted text around them."""
    items: list[Item] = []
    notes: list[str] = []
    header: Header | None = None
    rest: dict[int, str] = {}
    for before, bundle in read_bundles(raw):
        header = header or bundle.header
        items += [read_frame(frame, before) for frame in bundle.frames]
        notes += _notes(bundle, role)
        rest |= {before + noise.line: noise.text for noise in bundle.noise}
    around = read_lines([rest.get(n, "") for n in range(1, max(rest, default=0) + 1)], role, hint)
    return RawReading((*items, *around.items), around.unrecognised, header, tuple(notes))


def _notes(bundle: Bundle, role: View | None) -> list[str]:
    notes = []
    if not bundle.complete:
        notes.append("The collector's output is not complete; what is there was read.")
    if bundle.edited:
        notes.append(EDITED)
    collected_on = bundle.header.role if bundle.header else ""
    if role and collected_on and collected_on != role:
        notes.append(f"This was collected on a {collected_on}, not on a {role}; it was read as what it is.")
    return notes
