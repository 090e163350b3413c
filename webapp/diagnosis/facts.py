"""All readings of a case, and the one that counts for each fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from agents.facts import Fact, Reading, ReadingKind, View
from webapp.diagnosis.claim import EvidenceRef

T = TypeVar("T")
CITED = 16
"""Lines of one reading that a claim names: sixteen GPUs, and the beginning of a log."""


@dataclass(frozen=True, slots=True)
class Sourced:
    """A reading with where and when it was got.

    source: evidence name by content. epoch: how many changes had been applied to the machine when it
    was taken; readings of different epochs that differ are a change, not a contradiction. order:
    position in time within the epoch. label: what people call the output, "" for nothing of its own.
    at: when it was got, None where nobody kept that.
    """

    reading: Reading[Any]
    source: str
    epoch: int = 0
    order: int = 0
    label: str = ""
    at: datetime | None = None

    @property
    def when(self) -> tuple[int, int]:
        return self.epoch, self.order

    @property
    def view(self) -> View:
        """Whose eyes saw it, by the fact's name."""
        return Fact(self.reading.fact_id, "", None).view

    @property
    def refs(self) -> tuple[EvidenceRef, ...]:
        return tuple(EvidenceRef(self.source, line) for line in self.reading.lines or (1,))


def _rank(item: Sourced) -> tuple[bool, int, bool, int, int]:
    """Answers first, and an absence that was looked for is one; of those the newest epoch, then known before
    absent, complete before partial, what lacks less before what lacks more, later before earlier. What
    does not tell hides no answer of before it, and a clean log of after a change hides what was amiss."""
    known = item.reading.kind is ReadingKind.KNOWN
    answered = known or item.reading.kind is ReadingKind.ABSENT
    return (answered, item.epoch, known, -len(item.reading.missing), item.order)


@dataclass(frozen=True)
class Facts:
    """Every reading, grouped by fact id, the one that counts first. changes: how many were applied by
    now, which may be more than the newest reading knows of."""

    readings: Mapping[str, tuple[Sourced, ...]]
    changes: int = 0

    @classmethod
    def of(cls, items: Iterable[Sourced], changes: int = 0) -> Facts:
        grouped: dict[str, list[Sourced]] = {}
        for item in items:
            grouped.setdefault(item.reading.fact_id, []).append(item)
        ranked = {k: tuple(sorted(v, key=_rank, reverse=True)) for k, v in grouped.items()}
        return cls(ranked, changes)

    def all(self, fact: Fact[Any]) -> tuple[Sourced, ...]:
        return self.readings.get(fact.id, ())

    def best(self, fact: Fact[Any]) -> Sourced | None:
        found = self.all(fact)
        return found[0] if found else None

    def value(self, fact: Fact[T]) -> T | None:
        """The known value, or None when nothing known was read."""
        best = self.best(fact)
        return best.reading.value if best and best.reading.kind is ReadingKind.KNOWN else None

    def kind(self, fact: Fact[Any]) -> ReadingKind:
        """not_run when no output that could tell was ever given."""
        best = self.best(fact)
        return best.reading.kind if best else ReadingKind.NOT_RUN

    def unread(self, fact: Fact[Any]) -> str:
        """Why the reading that counts has no value, as its reader says it; "" without a reading."""
        best = self.best(fact)
        return best.reading.detail if best and best.reading.kind is not ReadingKind.KNOWN else ""

    def refs(self, *facts: Fact[Any]) -> tuple[EvidenceRef, ...]:
        """Evidence of the readings that count for these facts: all lines of a table of some GPUs."""
        found = (self.best(fact) for fact in facts)
        return tuple(ref for item in found if item for ref in item.refs[:CITED])

    def before(self, fact: Fact[Any]) -> Sourced | None:
        """The newest known reading of an earlier epoch than the newest one, for before/after."""
        known = [s for s in self.all(fact) if s.reading.kind is ReadingKind.KNOWN]
        return next((s for s in known if s.epoch < self.newest_epoch), None)

    def is_past(self, fact: Fact[Any]) -> bool:
        """Whether what is known of it was read before the last change, and not since."""
        best = self.best(fact)
        return best is not None and best.reading.kind is ReadingKind.KNOWN and best.epoch < self.now

    def newer(self, fact: Fact[Any], than: Fact[Any]) -> bool:
        """Whether a change lies between what is known of `than` and what is known of this."""
        known = [s for f in (fact, than) if (s := self.best(f)) is not None]
        if len(known) < 2 or any(s.reading.kind is ReadingKind.NOT_RUN for s in known):
            return False
        return known[0].epoch > known[1].epoch

    def derived(self, make: Callable[[Facts], T]) -> T:
        """What `make` gets from these facts, computed once; they never change."""
        if make not in self._derived:
            self._derived[make] = make(self)
        found: T = self._derived[make]
        return found

    @cached_property
    def _derived(self) -> dict[Callable[[Facts], Any], Any]:
        return {}

    def only(self, sources: set[str], *, user: bool) -> Facts:
        """The readings of these sources alone, with what the user said when `user`."""
        return Facts.of(
            item
            for group in self.readings.values()
            for item in group
            if item.source in sources or (user and item.reading.fact_id.startswith("user."))
        )

    @cached_property
    def now(self) -> int:
        """The state that the machine is in: how many changes were applied to it."""
        return max(self.changes, *self._got.values(), 0)

    @cached_property
    def past(self) -> frozenset[str]:
        """Sources that were got before the last change; the same bytes got since are of now."""
        return frozenset(source for source, epoch in self._got.items() if epoch < self.now)

    @property
    def nothing_since(self) -> bool:
        """Whether there are readings, and all of them are from before the last change."""
        return bool(self._got) and len(self.past) == len(self._got)

    @cached_property
    def _got(self) -> dict[str, int]:
        """The newest epoch of each source. What a person says has no time of its own."""
        epochs: dict[str, int] = {}
        for item in (item for group in self.readings.values() for item in group):
            if not item.reading.fact_id.startswith("user."):
                epochs[item.source] = max(item.epoch, epochs.get(item.source, 0))
        return epochs

    @cached_property
    def newest_epoch(self) -> int:
        return max((s.epoch for group in self.readings.values() for s in group), default=0)
