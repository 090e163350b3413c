"""What a contradiction rule is: facts that cannot all be right, said by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from webapp.diagnosis.case import Bound
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts

Clash = tuple[str, tuple[EvidenceRef, ...]]
"""What is said, and the lines that say it."""

Check = Callable[[Facts, tuple[Bound, ...]], Iterable[Clash]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One file of webapp/diagnosis/contradictions holds one, named `rule`. Its id is the file's name."""

    module: str
    check: Check

    @property
    def id(self) -> str:
        return self.module.rpartition(".")[2]
