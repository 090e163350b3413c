"""All readings of a case, and the one that counts for each fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
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


@dataclass(frozen=True, slots=True)
class Reads:
    """Ids of the facts that one rule read. outcome: those that its verdict, state or status follows from.
    words: those that only its words, lines and open questions rest on. gaps: those that it looked for and
    that have no value."""

    outcome: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    gaps: set[str] = field(default_factory=set)

    @property
    def used(self) -> frozenset[str]:
        """Those with a reading that went into what the rule says."""
        return frozenset(self.outcome | self.words)

    @property
    def every(self) -> frozenset[str]:
        return self.used | self.gaps

    def add(self, other: Reads, *, words: bool = True) -> None:
        """What another rule or a derived value rests on. words False: only its outcome is used."""
        self.outcome.update(other.outcome)
        self.gaps.update(other.gaps)
        if words:
            self.words.update(other.words)


NOTHING = Reads()


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
    now, which may be more than the newest reading knows of. origins: by the id of a derived fact, those that
    it is derived from. withheld: by the id of a fact whose readings are not of this machine, those that say so.

    Each door writes down the id that it was asked for. `scope` gives the same facts with an empty record.
    """

    readings: Mapping[str, tuple[Sourced, ...]]
    changes: int = 0
    origins: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)
    withheld: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)
    reads: Reads = field(default_factory=Reads, compare=False, repr=False)
    _made: dict[Callable[[Facts], Any], tuple[Any, Reads]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, items: Iterable[Sourced], changes: int = 0) -> Facts:
        grouped: dict[str, list[Sourced]] = {}
        for item in items:
            grouped.setdefault(item.reading.fact_id, []).append(item)
        ranked = {k: tuple(sorted(v, key=_rank, reverse=True)) for k, v in grouped.items()}
        return cls(ranked, changes)

    def scope(self) -> Facts:
        """The same facts, with a record of its own for one rule."""
        return Facts(self.readings, self.changes, self.origins, self.withheld, Reads(), self._made)

    @property
    def aside(self) -> Facts:
        """The same facts, for words alone: what is read here decides nothing."""
        reads = Reads(self.reads.words, self.reads.words, self.reads.gaps)
        return Facts(self.readings, self.changes, self.origins, self.withheld, reads, self._made)

    def all(self, fact: Fact[Any]) -> tuple[Sourced, ...]:
        items = self.readings.get(fact.id, ())
        if items:
            self._note(self.reads.outcome, fact)
        else:
            self.reads.gaps.add(fact.id)
        return items

    def best(self, fact: Fact[Any]) -> Sourced | None:
        items = self.all(fact)
        return items[0] if items else None

    def value(self, fact: Fact[T], where: Callable[[T], object] | None = None) -> T | None:
        """The known value, or None when nothing known was read. where: what the value must be for the rule
        to use it; another is None, as if it had not been read, and does not count as read."""
        known = self.peek(fact)
        if known is None:
            self.reads.gaps.add(fact.id)
            self.reads.outcome.update(self.withheld.get(fact.id, ()))
        elif where is None or where(known):
            self._note(self.reads.outcome, fact)
            return known
        return None

    def _note(self, reads: set[str], fact: Fact[Any]) -> None:
        """With the facts that it is derived from."""
        reads.add(fact.id)
        reads.update(self.origins.get(fact.id, ()))

    def peek(self, fact: Fact[T]) -> T | None:
        """The known value, for a choice between facts of which the chosen one is then read."""
        items = self.readings.get(fact.id)
        return items[0].reading.value if items and items[0].reading.kind is ReadingKind.KNOWN else None

    def any_of(self, *facts: Fact[Any]) -> bool:
        """Whether one of these has a value. Of several that have none decides alone, so only one that is by
        itself is read."""
        known = [fact for fact in facts if self.peek(fact)]
        self.reads.gaps.update(() if known else (fact.id for fact in facts))
        if len(known) == 1:
            self._note(self.reads.outcome, known[0])
        return bool(known)

    def exception(self, rule: Callable[[Facts], T]) -> T:
        """What an exception to a rule says. One that does not hold (a false value) counts for nothing read."""
        inner = self.scope()
        value = rule(inner)
        self.reads.gaps.update(inner.reads.gaps)
        if value:
            self.reads.add(inner.reads)
        return value

    def kind(self, fact: Fact[Any]) -> ReadingKind:
        """not_run when no output that could tell was ever given."""
        best = self.best(fact)
        return best.reading.kind if best else ReadingKind.NOT_RUN

    def unread(self, fact: Fact[Any]) -> str:
        """Why the reading that counts has no value, as its reader says it; "" without a reading."""
        best = self.best(fact)
        return best.reading.detail if best and best.reading.kind is not ReadingKind.KNOWN else ""

    def unknown(self, *facts: Fact[Any]) -> tuple[Fact[Any], ...]:
        """Those that are not known, for a rule that asks for them."""
        missing = tuple(fact for fact in facts if self.peek(fact) is None)
        for fact in facts:
            if fact in missing:
                self.reads.gaps.add(fact.id)
                self.reads.words.update(self.withheld.get(fact.id, ()))
            else:
                self._note(self.reads.words, fact)
        return missing

    def refs(self, *facts: Fact[Any]) -> tuple[EvidenceRef, ...]:
        """Evidence of the readings that count for these facts: all lines of a table of some GPUs."""
        read = [fact for fact in facts if fact.id in self.readings]
        for fact in read:
            self._note(self.reads.words, fact)
        return tuple(ref for fact in read for ref in self.readings[fact.id][0].refs[:CITED])

    def before(self, fact: Fact[Any]) -> Sourced | None:
        """The newest known reading of an earlier epoch than the newest one, for before/after."""
        known = [s for s in self.all(fact) if s.reading.kind is ReadingKind.KNOWN]
        return next((s for s in known if s.epoch < self.newest_epoch), None)

    def is_past(self, fact: Fact[Any]) -> bool:
        """Whether what is known of it was read before the last change, and not since."""
        items = self.readings.get(fact.id)
        if not items or items[0].reading.kind is not ReadingKind.KNOWN or items[0].epoch >= self.now:
            return False
        self._note(self.reads.outcome, fact)
        return True

    def newer(self, fact: Fact[Any], than: Fact[Any]) -> bool:
        """Whether a change lies between what is known of `than` and what is known of this; both are read
        only where one does."""
        groups = [self.readings.get(f.id) for f in (fact, than)]
        known = [items[0] for items in groups if items]
        if len(known) < 2 or any(s.reading.kind is ReadingKind.NOT_RUN for s in known):
            return False
        if known[0].epoch <= known[1].epoch:
            return False
        self._note(self.reads.outcome, fact)
        self._note(self.reads.outcome, than)
        return True

    def derived(self, make: Callable[[Facts], T]) -> T:
        """What `make` gets from these facts, computed once; they never change. Who uses it reads what it read."""
        if make not in self._made:
            inner = self.scope()
            self._made[make] = make(inner), inner.reads
        value: T
        value, reads = self._made[make]
        self.reads.add(reads)
        return value

    def only(self, sources: set[str], *, user: bool) -> Facts:
        """The readings of these sources alone, with what the user said when `user`."""
        return Facts.of(
            item
            for group in self.readings.values()
            for item in group
            if item.source in sources or (user and item.reading.fact_id.startswith("user."))
        )

    @property
    def now(self) -> int:
        """The state that the machine is in: how many changes were applied to it."""
        return max(self.changes, *self._epoch_of_source.values(), 0)

    @property
    def past(self) -> frozenset[str]:
        """Sources that were got before the last change; the same bytes got since are of now."""
        return frozenset(source for source, epoch in self._epoch_of_source.items() if epoch < self.now)

    @property
    def nothing_since(self) -> bool:
        """Whether there are readings, and all of them are from before the last change."""
        return bool(self._epoch_of_source) and len(self.past) == len(self._epoch_of_source)

    @property
    def _epoch_of_source(self) -> dict[str, int]:
        return self.derived(_epochs)

    @property
    def newest_epoch(self) -> int:
        return self.derived(_newest)


def _epochs(facts: Facts) -> dict[str, int]:
    """The newest epoch of each source. What a person says has no time of its own."""
    epochs: dict[str, int] = {}
    for item in (item for group in facts.readings.values() for item in group):
        if not item.reading.fact_id.startswith("user."):
            epochs[item.source] = max(item.epoch, epochs.get(item.source, 0))
    return epochs


def _newest(facts: Facts) -> int:
    return max((s.epoch for group in facts.readings.values() for s in group), default=0)
