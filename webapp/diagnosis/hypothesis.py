"""What a hypothesis is: a claim that evidence can support, refute or leave open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from webapp.diagnosis.case import Case, Verdict


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One file of webapp/diagnosis/hypotheses holds one, named `hypothesis`. Its id is the file's name.

    refuted_by: what observation refutes it, as `assess` does; programs and facts by their titles, in quotes.
    """

    module: str
    claim: str
    assess: Callable[[Case], Verdict]
    refuted_by: str

    @property
    def id(self) -> str:
        return self.module.rpartition(".")[2]
