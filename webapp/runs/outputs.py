"""Given outputs into sourced readings, without a database: what `diagnose` and `recognise` stand on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from agents import sosreport
from agents.archives import ArchiveError, Member, hint_of, unpack
from agents.facts import View
from agents.raw_reading import Item, RawReading, read_raw
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.workload import read_workload
from webapp.records.redaction_on_intake import Hiding
from webapp.runs.sources import Given

# Files of a folder that describe it; they are not outputs.
DESCRIPTIONS = frozenset({"case.toml", "provenance.toml", "README.md"})


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """One given output and what was read from it."""

    given: Given
    digest: str
    reading: RawReading

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
        found = {f"paste@{output.digest}": output.given.name for output in self.outputs}
        for output in self.outputs:
            for item in output.reading.items:
                found.setdefault(output.source_of(item), f"{output.given.name} ({item.reader})")
        return found

    def notes(self) -> list[str]:
        """What the reader says beside the readings; the first ten, and how many more."""
        found = [note for output in self.outputs for note in output.reading.notes]
        return [*found[:10], f"and {len(found) - 10} more"] if found[10:] else found

    def unrecognised(self) -> list[dict[str, Any]]:
        return [
            {"source": f"paste@{output.digest}", "lines": list(lines)}
            for output in self.outputs
            for lines in output.reading.unrecognised
        ]


def read_given(given: Iterable[Given], role: View | None, hiding: Hiding | None = None) -> Collected:
    """hiding: names, addresses and serials are replaced in the outputs before they are read."""
    found = Collected(hidden=hiding)
    parts: list[tuple[Given, Member]] = []
    for one in given:
        if one.tables:
            found.tables = merged(found.tables, one.tables)
        else:
            parts += _parts(one, hiding)
    owners = sosreport.owners((member.path, member.data) for _, member in parts)
    found.outputs += [_read(one, member, role, owners) for one, member in parts]
    return found


def _parts(given: Given, hiding: Hiding | None) -> Iterator[tuple[Given, Member]]:
    """An archive's files one by one."""
    name = "" if given.name == "-" else given.name
    try:
        members = unpack(given.raw, name)
    except ArchiveError as error:
        members = (Member(name, problem=str(error)),)
    if hiding:
        members = tuple(hiding.members(members))
    for member in members:
        if PurePath(member.path).name in DESCRIPTIONS:
            continue
        yield replace(given, name=member.path or given.name, raw=member.data), member


def _read(part: Given, member: Member, role: View | None, owners: sosreport.Owners) -> ReadOutput:
    """What was left out says why."""
    reading = RawReading(notes=(f"{part.name}: {member.problem}",))
    if not member.problem:
        hint = sosreport.hint_with_owner(member.path, hint_of(member.path), owners)
        reading = read_raw(part.raw, role=role, hint=hint)
    return ReadOutput(part, _digest(part.raw), reading)


def facts_from(collected: Collected) -> Facts:
    return Facts.of(_sourced(collected))


def _sourced(collected: Collected) -> Iterator[Sourced]:
    newest = max((output.given.epoch for output in collected.outputs), default=0)
    order = 0
    for output in collected.outputs:
        for item in output.reading.items:
            for reading in item.readings:
                order += 1
                yield Sourced(reading, output.source_of(item), output.given.epoch, order)
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
