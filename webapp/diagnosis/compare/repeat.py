"""The same probes or benchmark run twice: readings compared probe by probe, and measurements after the gate.

Answers are compared probe by probe, because two probes read some facts in different detail. The gate compares the
two runs alone: other outputs of the machine are the same for both, and would look like proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agents.facts import ReadingKind, all_facts
from agents.facts.bench import TELEMETRY
from webapp.diagnosis.compare.kinds import KINDS
from webapp.diagnosis.compare.state_diff import ORDER, Difference, diff_states
from webapp.diagnosis.compare.verification import Pick, Verified, verified
from webapp.diagnosis.facts import Facts, Sourced

_MEASURED = "bench."
_ANSWERS = frozenset({ReadingKind.KNOWN, ReadingKind.ABSENT})

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one probe on one fact in the two runs; None where there is none."""

    fact_id: str
    title: str
    before: Sourced | None
    after: Sourced | None

    @property
    def answered(self) -> tuple[bool, bool]:
        """For each run, whether its reading is known or absent."""
        return _is_answer(self.before), _is_answer(self.after)

    @property
    def in_part(self) -> bool:
        return _is_incomplete(self.before) or _is_incomplete(self.after)


@dataclass(frozen=True, slots=True)
class RepeatComparison:
    """compared: ids of the facts that both runs read. differences: those that can matter for P2P first. in_part:
    facts compared as far as both runs have them. one_sided: answers that only one run has. untold: facts that no
    probe read in either run. measured: by kind, after the gate. unruled: measurements in both runs that no rule
    compares."""

    compared: tuple[str, ...]
    differences: tuple[Difference, ...]
    in_part: tuple[Answers, ...]
    one_sided: tuple[Answers, ...]
    untold: tuple[Answers, ...]
    measured: tuple[Verified, ...]
    unruled: tuple[Answers, ...]


def compare_repeat(before: Iterable[Sourced], after: Iterable[Sourced]) -> RepeatComparison:
    """Readings of each run, in the order of their evidence."""
    was, now = ([replace(i, epoch=n) for i in run] for n, run in enumerate((before, after)))
    every = list(_pairs_of_answers(_newest_answers(was), _newest_answers(now)))
    both = [one for one in every if all(one.answered)]
    read = [one for one in both if not one.fact_id.startswith(_MEASURED)]
    answered_ids = {one.fact_id for one in every if any(one.answered)}
    neither = (one for one in every if one.fact_id not in answered_ids)
    return RepeatComparison(
        tuple(dict.fromkeys(one.fact_id for one in read)),
        _merged_differences(d for one in read for d in _differences(one)),
        tuple(one for one in read if one.in_part),
        tuple(one for one in every if one.answered[0] != one.answered[1]),
        tuple({one.fact_id: one for one in neither}.values()),
        verified(Facts.of([*was, *now]), Pick(0), Pick(1), frozenset()),
        _without_rules(both),
    )


def _newest_answers(items: Sequence[Sourced]) -> dict[Key, Sourced]:
    """The newest item by fact and probe; among answers of one output a known or absent one wins."""
    ranked = sorted(items, key=lambda item: (_is_answer(item), item.order))
    return {(i.reading.fact_id, i.source.partition("@")[0]): i for i in ranked}


def _pairs_of_answers(was: dict[Key, Sourced], now: dict[Key, Sourced]) -> Iterator[Answers]:
    for key in sorted(was.keys() | now.keys()):
        fact = all_facts().get(key[0])
        title = fact.title if fact else key[0]
        yield Answers(key[0], title, was.get(key), now.get(key))


def _is_answer(item: Sourced | None) -> bool:
    return item is not None and item.reading.kind in _ANSWERS


def _is_incomplete(item: Sourced | None) -> bool:
    return item is not None and not item.reading.complete


def _differences(one: Answers) -> Iterator[Difference]:
    """Differences between the two readings, without parts that an incomplete reading may only lack."""
    sides = (Facts.of([item] if item else []) for item in (one.before, one.after))
    for difference in diff_states(*sides).differences:
        gone = difference.after is None and _is_incomplete(one.after)
        if not (gone or (difference.before is None and _is_incomplete(one.before))):
            yield difference


def _merged_differences(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Equal differences from several probes become one, with the outputs of all of them."""
    alike: dict[tuple[object, ...], Difference] = {}
    for difference in differences:
        key = (difference.fact_id, difference.names, difference.before, difference.after)
        if (same := alike.get(key)) is not None:
            difference = replace(
                same,
                refs_before=same.refs_before + difference.refs_before,
                refs_after=same.refs_after + difference.refs_after,
            )
        alike[key] = difference
    return tuple(sorted(alike.values(), key=lambda d: (ORDER.index(d.relevance.bears), d.fact_id)))


def _without_rules(both: Iterable[Answers]) -> tuple[Answers, ...]:
    """Measurements that no rule compares. Telemetry is left out: the gate uses it."""
    ruled = {kind.fact.id for kind in KINDS} | {TELEMETRY.id}
    return tuple(o for o in both if o.fact_id.startswith(_MEASURED) and o.fact_id not in ruled)
