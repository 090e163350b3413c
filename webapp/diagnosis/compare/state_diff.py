"""The differences between two snapshots of a machine, part by part, and their relevance for P2P."""

from collections.abc import Iterator
from dataclasses import dataclass

from agents.facts import ReadingKind, all_facts
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.compare.value_parts import Part, Parts, value_parts
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.reference.p2p_relevance import Bears, Relevance, relevance

# Measurements are compared as such; the `vm.*` facts are `host.vms` read for one VM.
_ELSEWHERE = ("bench.", "user.", "vm.")


@dataclass(frozen=True, slots=True)
class Difference:
    """Parts of one fact that changed alike. before, after: None where the part is not there.

    names: of the parts; ("",) for a value without parts.
    """

    fact_id: str
    title: str
    names: tuple[str, ...]
    before: str | None
    after: str | None
    relevance: Relevance
    refs_before: tuple[EvidenceRef, ...]
    refs_after: tuple[EvidenceRef, ...]


@dataclass(frozen=True, slots=True)
class StateDiff:
    """differences: those that can matter for P2P first. same: titles of facts that both sides read alike.
    not_again: facts that were not read again. only_after: facts that were read for the first time."""

    differences: tuple[Difference, ...]
    same: tuple[str, ...]
    not_again: tuple[str, ...]
    only_after: tuple[str, ...]


MANY = 4
ORDER = (Bears.YES, Bears.TIME, Bears.UNKNOWN, Bears.NO)


def diff_states(before: Facts, after: Facts) -> StateDiff:
    """Compares all facts known at either time; `after` includes what was known before."""
    all_differences: list[Difference] = []
    same: list[str] = []
    not_again: list[str] = []
    only_after: list[str] = []
    for fact_id in sorted(before.readings.keys() | after.readings.keys()):
        if fact_id.startswith(_ELSEWHERE):
            continue
        old, new = _newest_answer(before, fact_id), _newest_answer(after, fact_id)
        if old is None:
            only_after += [_title(fact_id)] if new else []
        elif new is None or (new.source, new.epoch) == (old.source, old.epoch):
            not_again.append(_title(fact_id))
        else:
            differences = list(_differences(fact_id, old, new))
            all_differences += differences
            same += [] if differences else [_title(fact_id)]
    all_differences.sort(key=lambda d: (ORDER.index(d.relevance.bears), d.fact_id))
    return StateDiff(tuple(all_differences), tuple(same), tuple(not_again), tuple(only_after))


def _newest_answer(facts: Facts, fact_id: str) -> Sourced | None:
    """The newest reading that is known or absent."""
    answers = (ReadingKind.KNOWN, ReadingKind.ABSENT)
    readings = [item for item in facts.readings.get(fact_id, ()) if item.reading.kind in answers]
    return max(readings, key=lambda item: (item.epoch, item.order), default=None)


def _title(fact_id: str) -> str:
    fact = all_facts().get(fact_id)
    return fact.title if fact else fact_id


def _differences(fact_id: str, old: Sourced, new: Sourced) -> Iterator[Difference]:
    parts = [_parts_of(fact_id, item) for item in (old, new)]
    both = all(item.reading.kind is ReadingKind.KNOWN for item in (old, new))
    alike: dict[tuple[str | None, str | None, Relevance], list[str]] = {}
    for name in dict.fromkeys([*parts[0], *parts[1]]):
        was, now = parts[0].get(name), parts[1].get(name)
        if was != now and not (both and _is_optional(was, now)):
            texts = (_text(was), _text(now))
            alike.setdefault((*texts, relevance(fact_id, name, *texts)), []).append(name)
    refs = old.refs[:1], new.refs[:1]
    for names, before, after, why in _folded_differences(alike):
        yield Difference(fact_id, _title(fact_id), names, before, after, why, *refs)


def _folded_differences(
    alike: dict[tuple[str | None, str | None, Relevance], list[str]],
) -> Iterator[tuple[tuple[str, ...], str | None, str | None, Relevance]]:
    """The same field of many items, each with its own value, becomes one difference, in the same order on both
    sides."""
    fields: dict[tuple[str, Relevance], list[tuple[str, str | None, str | None]]] = {}
    for (before, after, why), names in alike.items():
        if len(names) > 1:
            yield tuple(names), before, after, why
        else:
            key = (names[0].rpartition(" ")[2], why)
            fields.setdefault(key, []).append((names[0], before, after))
    for (_, why), rows in fields.items():
        if len(rows) >= MANY and all(before and after for _, before, after in rows):
            yield (
                tuple(name for name, _, _ in rows),
                ", ".join(before or "" for _, before, _ in rows),
                ", ".join(after or "" for _, _, after in rows),
                why,
            )
        else:
            yield from (((name,), before, after, why) for name, before, after in rows)


def _text(part: Part | None) -> str | None:
    return part.text if part else None


def _is_optional(was: Part | None, now: Part | None) -> bool:
    """Whether only one of two outputs has the part, and an output may leave it out."""
    part = was or now
    return (was is None or now is None) and bool(part and part.if_told)


def _parts_of(fact_id: str, item: Sourced) -> Parts:
    return value_parts(fact_id, item.reading.value) if item.reading.value is not None else {}
