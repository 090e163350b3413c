"""Defines a fact, and the five ways a reading of it can end.

A `Fact` names one thing that can be known about a machine; a `Reading` is what one parser got for it from one output.
"Tool missing", "not supported here", "could not be read", "never asked" and "zero" stay different values up to the
screen, so that unknown never looks like healthy.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class View(StrEnum):
    """Where a reading comes from: the guest (or bare-metal server), the hypervisor, or a person."""

    GUEST = "guest"
    HOST = "host"
    USER = "user"


class ReadingKind(StrEnum):
    """How a reading ended.

    known: `value` holds it. absent: looked for, and it is not there. unsupported: this machine
    cannot answer (tool missing, old driver). unreadable: it answered, we could not parse it.
    not_run: nobody asked, or the answer was refused for lack of rights.
    """

    KNOWN = "known"
    ABSENT = "absent"
    UNSUPPORTED = "unsupported"
    UNREADABLE = "unreadable"
    NOT_RUN = "not_run"


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """One parser's answer for one fact.

    lines: 1-based numbers, within the parser's input, of the lines that the value rests on. missing: what this value
    lacks ("row GPU7"); then it is not complete.
    """

    fact_id: str
    kind: ReadingKind
    value: T | None = None
    detail: str = ""
    lines: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """One entry of the vocabulary (DESIGN.md, fact ids). `type` is the value's type, for decoding."""

    id: str
    title: str
    type: Any = field(compare=False)

    @property
    def view(self) -> View:
        """`vm.*` facts are the host's view of a guest; `bench.*` are measured in the guest."""
        head = self.id.partition(".")[0]
        return {"vm": View.HOST, "host": View.HOST, "user": View.USER}.get(head, View.GUEST)

    def known(self, value: T, *, lines: tuple[int, ...] = (), missing: tuple[str, ...] = ()) -> Reading[T]:
        return Reading(self.id, ReadingKind.KNOWN, value, "", lines, missing)

    def absent(self, detail: str, *, lines: tuple[int, ...] = ()) -> Reading[T]:
        return Reading(self.id, ReadingKind.ABSENT, None, detail, lines)

    def unsupported(self, detail: str, *, lines: tuple[int, ...] = ()) -> Reading[T]:
        return Reading(self.id, ReadingKind.UNSUPPORTED, None, detail, lines)

    def unreadable(self, detail: str, *, lines: tuple[int, ...] = ()) -> Reading[T]:
        return Reading(self.id, ReadingKind.UNREADABLE, None, detail, lines)

    def not_run(self, detail: str, *, lines: tuple[int, ...] = ()) -> Reading[T]:
        return Reading(self.id, ReadingKind.NOT_RUN, None, detail, lines)
