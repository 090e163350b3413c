"""What a contradiction rule is: facts that cannot all be right, said by themselves."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agents.facts import Fact
from webapp.diagnosis.case import Case
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts

Clash = tuple[str, tuple[EvidenceRef, ...]]
"""What is said, and the lines that say it."""

Check = Callable[[Case], Iterable[Clash]]


def of_one_epoch(facts: Facts, *compared: Fact[Any]) -> bool:
    """Whether the readings that count were taken between the same changes; else they show a change."""
    return len({item.epoch for fact in compared if (item := facts.best(fact))}) <= 1


@dataclass(frozen=True, slots=True)
class Rule:
    """One file of webapp/diagnosis/contradictions holds one, named `rule`. Its id is the file's name.

    title: what people read in place of the id, without a stop.
    """

    module: str
    title: str
    check: Check

    @property
    def id(self) -> str:
        return self.module.rpartition(".")[2]
