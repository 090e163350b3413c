"""Stage 2 of intake: parses what was received. It needs no database; a large text is parsed in a child process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import agents
from agents.facts import View
from agents.framing import clean
from agents.probe import Output
from agents.raw_reading import EDITED, Item, RawReading, read_output, read_raw, title_of
from webapp.records import parse_process
from webapp.records.models import Evidence
from webapp.records.received import BUNDLE, PASTE, Received

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Read:
    """An output and what today's parsers read in it."""

    received: Received
    reading: RawReading

    @property
    def evidence(self) -> Evidence:
        """Raises ValueError when the output is not stored yet."""
        if self.received.evidence is None:
            raise ValueError("The output is not stored.")
        return self.received.evidence

    def stored_as(self, evidence: Evidence) -> Read:
        return replace(self, received=replace(self.received, evidence=evidence))


def read(output: Received) -> Read:
    """It may take a minute. Raises ValueError for a view that does not exist."""
    if output.reader not in (PASTE, BUNDLE):
        return Read(output, _read_answer(output))
    reading = read_text(output.raw, role=View(output.view) if output.view else None, hint=output.meta.get("hint", ""))
    if output.redacted:  # the changes are ours
        reading = replace(reading, notes=tuple(note for note in reading.notes if note != EDITED))
    return Read(output, reading)


def read_text(raw: bytes, *, role: View | None, hint: str = "", timeout_s: float = TIMEOUT_S) -> RawReading:
    """`read_raw`, in a child process when the text is large. A text that takes too long is unrecognised, with a
    note."""
    if len(raw) <= parse_process.LARGE_BYTES:
        return read_raw(raw, role=role, hint=hint)
    # By reference to a function of `agents`: the child then starts without Django.
    reading = parse_process.apart(partial(read_raw, role=role, hint=hint), raw, timeout_s=timeout_s)
    return reading or RawReading(
        unrecognised=((1, raw.count(b"\n") + 1),),
        notes=(f"It is stored, but could not be read within {timeout_s:.0f} s.",),
    )


def _read_answer(answer: Received) -> RawReading:
    names = ("exit_code", "alternative", "truncated", "timed_out")
    circumstances = {name: answer.meta[name] for name in names if name in answer.meta}
    output = replace(Output(clean(answer.raw), clean(answer.stderr)), **circumstances)
    readings = read_output(answer.reader, output)
    return RawReading((Item(answer.reader, title_of(answer.reader), View.GUEST, readings),))


@cache
def parsers_version() -> str:
    """Twelve hex digits over the source of all parsers: it names the parser of a stored reading."""
    root = Path(agents.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
