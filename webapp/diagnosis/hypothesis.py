"""What a hypothesis is: a claim that evidence can support, refute or leave open, and how it is said."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim


class Severity(StrEnum):
    """What a supported hypothesis does to the question of speed.

    broken: no step is worth a profile before it is settled. setup: any figure of the step is one of a wrong
    setup. Both are said before any figure of the step. slow: said after the figures.
    """

    BROKEN = "broken"
    SETUP = "setup"
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One file of webapp/diagnosis/hypotheses holds one, named `hypothesis`. Its id is the file's name.

    refuted_by: what observation refutes it, as `assess` does; programs and facts by their titles, in quotes.
    rank: of the supported ones the lowest comes first, and no two are equal: what is broken (from 110), a
    wrong setup (210), a bad link (310), what fills the step (410), what keeps the GPUs from each other (510),
    what makes that slower than it need be (610), mere signs (710).
    plain: a sentence for somebody who does not know the field's words, or what makes it from the case.
    headline: the answer in one sentence; "" says the claim.
    decided_by: ids of the tests (`next_test.CANDIDATES`) that could settle it while it is open.
    causes: ids of the hypotheses that are only signs of this one; it is ranked before them.
    first_guess: its place among what people guess first; 0 for none.
    """

    module: str
    claim: str
    assess: Callable[[Case], Verdict]
    refuted_by: str
    rank: int
    plain: str | Callable[[Case], str]
    headline: str = ""
    severity: Severity = Severity.SLOW
    decided_by: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    first_guess: int = 0

    @property
    def id(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def answer(self) -> str:
        return self.headline or self.claim

    def in_plain_words(self, case: Case) -> str:
        return self.plain if isinstance(self.plain, str) else self.plain(case)


def refuted(*against: Claim) -> Verdict:
    """The verdict where nothing speaks for it."""
    return Verdict(VerdictKind.REFUTED, (), against)
