"""The kinds of measurement that are compared before and after, each by its own rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.facts import Fact, ReadingKind
from agents.facts.bench import ALLREDUCE, COPY, SERVING, AllReduceResult, CopyResult
from webapp.diagnosis.compare.allreduces import compare_allreduces
from webapp.diagnosis.compare.copies import compare_copies
from webapp.diagnosis.compare.effects import Comparison
from webapp.diagnosis.compare.serving import compare_serving
from webapp.diagnosis.facts import Facts, Sourced


@dataclass(frozen=True, slots=True)
class Kind:
    """compare: two lists of results, neither empty, the oldest first; paired: they were taken in turns."""

    fact: Fact[Any]
    title: str
    compare: Callable[[Sequence[Any], Sequence[Any], bool], Comparison]


def _copies(before: Sequence[CopyResult], after: Sequence[CopyResult], paired: bool) -> Comparison:
    return compare_copies(before[0], after[0], more_before=before[1:], more_after=after[1:], paired=paired)


def _sums(before: Sequence[AllReduceResult], after: Sequence[AllReduceResult], paired: bool) -> Comparison:
    return compare_allreduces(before[0], after[0], more_before=before[1:], more_after=after[1:], paired=paired)


# What the engine's users feel comes first.
KINDS: tuple[Kind, ...] = (
    Kind(SERVING, "Serving", lambda b, a, paired: compare_serving(b, a, paired=paired)),
    Kind(ALLREDUCE, "All-reduces", _sums),
    Kind(COPY, "Copies between GPUs", _copies),
)


def results(facts: Facts, kind: Kind) -> list[Sourced]:
    """The known results, oldest first. All-reduces with NCCL's own choice replace all others: the control arm and
    the forced arm are no further runs, and no engine runs like them."""
    known = [
        item
        for item in facts.all(kind.fact)
        if item.reading.kind is ReadingKind.KNOWN and item.reading.value is not None
    ]
    known.sort(key=lambda item: (item.epoch, item.order))
    if kind.fact is ALLREDUCE:
        return [item for item in known if _as_chosen(item.reading.value)] or known
    return known


def _as_chosen(result: Any) -> bool:
    environment = result.environment if isinstance(result, AllReduceResult) else {}
    return environment.get("arm", "default") == "default"
