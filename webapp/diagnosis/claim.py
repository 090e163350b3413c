"""A sentence that names what it rests on. Every causal text of the product is one of these."""

from dataclasses import dataclass
from enum import StrEnum

Range = tuple[float, float]


class Basis(StrEnum):
    """How a claim is known: read or timed on this machine, computed from such figures, taken from a
    published source, or concluded from other facts."""

    MEASURED = "measured"
    ESTIMATED = "estimated"
    LITERATURE = "literature"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True, order=True)
class EvidenceRef:
    """One line of one stored raw output. source: named by content, "<probe>@<12 hex of sha256>"."""

    source: str
    line: int

    @property
    def is_typed(self) -> bool:
        """Whether a person typed it: on the first step, or in a workload file."""
        return self.source.partition("@")[0] == "workload"


def each_once(evidence: tuple[EvidenceRef, ...]) -> tuple[EvidenceRef, ...]:
    """In their order; two facts of one output often rest on the same line."""
    return tuple(dict.fromkeys(evidence))


@dataclass(frozen=True, slots=True)
class Claim:
    """evidence empty: only allowed for basis literature, whose source the text then names.

    range: low and high, where the claim is about a quantity; the unit stands in the text.
    """

    text: str
    evidence: tuple[EvidenceRef, ...] = ()
    range: Range | None = None
    basis: Basis = Basis.INFERRED

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", each_once(self.evidence))

    @property
    def known(self) -> str:
        """The basis in a word for people: a figure that a person typed is said, whoever measured it."""
        typed = bool(self.evidence) and all(ref.is_typed for ref in self.evidence)
        return "said" if typed and self.basis is Basis.MEASURED else self.basis.value


def measured_claim(text: str, evidence: tuple[EvidenceRef, ...]) -> Claim:
    """What an output of this machine shows by itself."""
    return Claim(text, evidence, None, Basis.MEASURED)
