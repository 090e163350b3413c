"""Reads the sources of a command into sourced readings, without a database, for `diagnose` and `recognise`."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from agents.archives import ArchiveError, Member, unpack
from agents.facts import View
from agents.raw_reading import Item, RawReading, read_raw
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.workload import read_workload
from webapp.records.reading import Read
from webapp.records.received import text_output, with_hints
from webapp.records.redaction_on_intake import Hiding
from webapp.runs.sources import SourceText

# Files of a folder that describe it; they are not outputs.
DESCRIPTIONS = frozenset({"case.toml", "provenance.toml", "README.md"})


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """One text of a source and what was read in it. name: its path, for people. epoch: the source's."""

    name: str
    epoch: int
    digest: str
    text: Read

    @property
    def reading(self) -> RawReading:
        return self.text.reading

    def source_of(self, item: Item) -> str:
        """The evidence name, by content: a bundle's frame has its own hash."""
        if item.frame is not None:
            return f"{item.reader}@{_digest(item.frame.raw_stdout)}"
        return f"paste@{self.digest}"


@dataclass(slots=True)
class Collected:
    """Everything read from a command's sources."""

    outputs: list[ReadOutput] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    hidden: Hiding | None = None

    @property
    def recognised(self) -> bool:
        return bool(self.tables) or any(output.reading.items for output in self.outputs)

    @property
    def partly(self) -> bool:
        """Some source gave nothing, or a collector's answer was cut or timed out in parts."""
        return any(_is_partial(output) for output in self.outputs)

    def names(self) -> dict[str, str]:
        """What each source is called where it came from: a path, or the reader in a bundle."""
        names = {f"paste@{output.digest}": output.name for output in self.outputs}
        for output in self.outputs:
            for item in output.reading.items:
                names.setdefault(output.source_of(item), f"{output.name} ({item.reader})")
        return names

    def notes(self) -> list[str]:
        """What the reader says beside the readings; the first ten, and how many more."""
        notes = [note for output in self.outputs for note in output.reading.notes]
        return [*notes[:10], f"and {len(notes) - 10} more"] if notes[10:] else notes

    def unrecognised(self) -> list[dict[str, Any]]:
        return [
            {"source": f"paste@{output.digest}", "lines": list(lines)}
            for output in self.outputs
            for lines in output.reading.unrecognised
        ]


def read_sources(sources: Iterable[SourceText], role: View | None, hiding: Hiding | None = None) -> Collected:
    """hiding: names, addresses and serials are replaced in the outputs before they are read."""
    collected = Collected(hidden=hiding)
    epochs: list[int] = []
    members: list[Member] = []
    for source in sources:
        if source.tables:
            collected.tables = merged(collected.tables, source.tables)
            continue
        files = _members(source, hiding)
        members += files
        epochs += [source.epoch] * len(files)
    for epoch, (member, hint) in zip(epochs, with_hints(members), strict=True):
        collected.outputs.append(_read(member, hint, epoch, role))
    return collected


def _members(source: SourceText, hiding: Hiding | None) -> list[Member]:
    """An archive's files one by one; for a refused archive its name and the reason."""
    name = "" if source.name == "-" else source.name
    try:
        members: Iterable[Member] = unpack(source.raw, name)
    except ArchiveError as error:
        members = (Member(name, problem=str(error)),)
    if hiding:
        members = hiding.members(members)
    return [member for member in members if PurePath(member.path).name not in DESCRIPTIONS]


def _read(member: Member, hint: str, epoch: int, role: View | None) -> ReadOutput:
    """A file that was left out is read as nothing, with a note that says why."""
    name = member.path or "-"
    if member.problem:
        reading = RawReading(notes=(f"{name}: {member.problem}",))
    else:
        reading = read_raw(member.data, role=role, hint=hint)
    text = text_output(member.data, view=role, origin="command", label=name, hint=hint)
    return ReadOutput(name, epoch, _digest(member.data), Read(text, reading))


def facts_from(collected: Collected) -> Facts:
    return Facts.of(_sourced(collected))


def _sourced(collected: Collected) -> Iterator[Sourced]:
    newest = max((output.epoch for output in collected.outputs), default=0)
    order = 0
    for output in collected.outputs:
        for item in output.reading.items:
            for reading in item.readings:
                order += 1
                yield Sourced(reading, output.source_of(item), output.epoch, order)
    if collected.tables:
        text = repr(sorted(collected.tables.items())).encode()
        for reading in read_workload(collected.tables):
            yield Sourced(reading, f"workload@{_digest(text)}", newest)


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of both; in a table that both have, the second's keys win."""
    result = dict(first)
    for key, value in second.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = {**old, **value}
        else:
            result[key] = value
    return result


def _is_partial(output: ReadOutput) -> bool:
    frames = [item.frame for item in output.reading.items if item.frame]
    cut = any(frame.output.truncated or frame.output.timed_out for frame in frames)
    return cut or bool(output.reading.notes) or not output.reading.items


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:12]
