"""The values that the stages of a diagnosis hand on: gates, bounds, verdicts, options, and their case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from webapp.diagnosis.claim import Basis, Claim, EvidenceRef, Range, each_once
from webapp.diagnosis.facts import Facts


class Path(StrEnum):
    NVLINK = "nvlink"
    PCIE = "pcie"


class GateState(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Gate:
    """One rung of the ladder on one path. expected: what the literature expects while it is unknown."""

    gate: str
    path: Path
    state: GateState
    why: str
    evidence: tuple[EvidenceRef, ...] = ()
    expected: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", each_once(self.evidence))


@dataclass(frozen=True, slots=True)
class Bound:
    """What a change can gain at one observed concurrency. Every *_ms is a range over one decode step.

    None: not computable; `missing` names the inputs. gains are factors of the throughput (1 = none).
    goal_reachable_by_p2p None: no goal, or not computable. profiled_ms: the step by kind of kernel,
    where a profile was taken at this load. unless: what would break the bound and was not ruled out; it
    stands wherever a gain is said. said: parts that rest on figures a person typed.
    """

    concurrency: int
    step_ms: Range | None = None
    floor_ms: Range | None = None
    comm_ms: Range | None = None
    unexplained_ms: Range | None = None
    max_gain_remove_comm: Range | None = None
    max_gain_p2p: Range | None = None
    goal_reachable_by_p2p: bool | None = None
    basis: Mapping[str, Basis] = field(default_factory=dict)
    assumes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    evidence: tuple[EvidenceRef, ...] = ()
    profiled_ms: Mapping[str, Range] = field(default_factory=dict)
    unless: str = ""
    said: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", each_once(self.evidence))

    def known(self, part: str) -> str:
        """How this part is known, in words for people."""
        basis = self.basis.get(part, Basis.ESTIMATED)
        if part not in self.said:
            return basis.value
        return "said" if basis is Basis.MEASURED else f"{basis}, weights as said"


class VerdictKind(StrEnum):
    SUPPORTED = "supported"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Verdict:
    """for_/against: claims. missing: probe or benchmark ids that would decide. share_ms: how much of
    a step at the lowest observed concurrency it could explain; None: no figure."""

    kind: VerdictKind
    for_: tuple[Claim, ...] = ()
    against: tuple[Claim, ...] = ()
    missing: tuple[str, ...] = ()
    share_ms: Range | None = None


class OptionStatus(StrEnum):
    RECOMMENDED = "recommended"
    POSSIBLE = "possible"
    NO_EFFECT = "no_effect"
    UNSAFE = "unsafe"
    BLOCKED = "blocked"
    DONE = "done"


class Actor(StrEnum):
    OPERATOR = "operator"
    HOST_ADMIN = "host admin"


class Restart(StrEnum):
    """What must restart, in rising order of cost."""

    NONE = "none"
    ENGINE = "engine"
    GUEST = "guest"
    VM = "vm"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Advice:
    """What an option's `judge` says for this case. predicted_effect: factor range on throughput.

    after: the id of an option that comes before it; what is recommended is then not recommended yet.
    """

    status: OptionStatus
    why: tuple[Claim, ...]
    predicted_effect: Range | None = None
    after: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    id: str
    text: str
    evidence: tuple[EvidenceRef, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", each_once(self.evidence))


@dataclass(frozen=True, slots=True)
class Correction:
    """A belief the operator's words or plan hold, and the correct statement with its source."""

    belief: str
    correct: str
    source: str


@dataclass(frozen=True, slots=True)
class Finding:
    """severity: "critical", "warning" or "info"."""

    id: str
    severity: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class NextTest:
    """decides: hypothesis and gate ids it could change. how: what to do, in one line. minutes: somebody's,
    with what has to be prepared. title: what people read in place of the id."""

    id: str
    title: str
    decides: tuple[str, ...]
    minutes: int
    restart: Restart
    actor: Actor
    how: str


@dataclass(frozen=True, slots=True)
class Layout:
    """comm_ms per token at concurrency 1. fits None: weights or memory unknown.

    restart: what moving to it restarts.
    """

    id: str
    comm_ms: Range | None
    fits: bool | None
    why: str
    restart: Restart = Restart.ENGINE


@dataclass(frozen=True, slots=True)
class Case:
    """What hypotheses and options judge by. verdicts is filled once the hypotheses have spoken."""

    facts: Facts
    ladder: tuple[Gate, ...] = ()
    bounds: tuple[Bound, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    def gate(self, name: str, path: Path = Path.PCIE) -> Gate | None:
        return next((g for g in self.ladder if g.gate == name and g.path is path), None)

    def verdict(self, hypothesis_id: str) -> VerdictKind:
        found = self.verdicts.get(hypothesis_id)
        return found.kind if found else VerdictKind.OPEN

    @property
    def single_stream(self) -> Bound | None:
        """The bound at the lowest observed concurrency."""
        return min(self.bounds, key=lambda b: b.concurrency, default=None)
