"""The values that the stages of a diagnosis hand on: gates, bounds, verdicts, options, and their case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from webapp.diagnosis.claim import Basis, Claim, EvidenceRef, Range, each_once
from webapp.diagnosis.facts import NOTHING, Facts, Reads
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.pairs import Path as Path  # as the rules know it


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
    reads: Reads = field(default=NOTHING, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", each_once(self.evidence))


@dataclass(frozen=True, slots=True)
class Bound:
    """What a change can gain at one observed concurrency. Every *_ms is a range over one decode step.

    None: not computable; `missing` names the inputs. gains are factors of the throughput (1 = none).
    goal_reachable_by_p2p None: no goal, or not computable. profiled_ms: the step by kind of kernel,
    where a profile was taken at this load. unless: what would break the bound and was not ruled out; it
    stands wherever a gain is said. typed_parts: parts that rest on figures a person typed. step_reads: what
    step_ms alone rests on. goal_reads: what goal_reachable_by_p2p rests on, beside `reads`.
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
    typed_parts: tuple[str, ...] = ()
    reads: Reads = field(default=NOTHING, compare=False, repr=False)
    step_reads: Reads = field(default=NOTHING, compare=False, repr=False)
    goal_reads: Reads = field(default=NOTHING, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", each_once(self.evidence))

    def known(self, part: str) -> str:
        """How this part is known, in words for people."""
        basis = self.basis.get(part, Basis.ESTIMATED)
        if part not in self.typed_parts:
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
    reads: Reads = field(default=NOTHING, compare=False, repr=False)


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
    reads: Reads = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Contradiction:
    id: str
    text: str
    evidence: tuple[EvidenceRef, ...]
    reads: Reads = field(default=NOTHING, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", each_once(self.evidence))


@dataclass(frozen=True, slots=True)
class Correction:
    """A belief the operator's words or plan hold, and the correct statement with its source."""

    belief: str
    correct: str
    source: str
    reads: Reads = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """severity: "critical", "warning" or "info"."""

    id: str
    severity: str
    claims: tuple[Claim, ...]
    reads: Reads = field(default=NOTHING, compare=False, repr=False)


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
    reads: Reads = field(default=NOTHING, compare=False, repr=False)


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
    reads: Reads = field(default=NOTHING, compare=False, repr=False)


Judged = TypeVar("Judged", Gate | None, Bound | None, Verdict | None)


@dataclass(frozen=True, slots=True)
class Case:
    """What hypotheses and options judge by. verdicts is filled once the hypotheses have spoken."""

    situation: Situation
    ladder: tuple[Gate, ...] = ()
    bounds: tuple[Bound, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        return self.situation.facts

    def scope(self) -> Case:
        """The same case, with a record of its own of what one rule reads."""
        return Case(self.situation.scope(), self.ladder, self.bounds, self.verdicts)

    def gate(self, name: str, path: Path = Path.PCIE) -> Gate | None:
        """With its words and lines; `state` is enough for a rule that uses neither."""
        return self._read(self._gate(name, path))

    def gates(self, *names: str) -> tuple[Gate, ...]:
        """On every path, in order of the ladder."""
        return tuple(gate for gate in self.ladder if gate.gate in names and self._read(gate))

    def state(self, name: str, path: Path = Path.PCIE) -> GateState | None:
        gate = self._gate(name, path)
        self.facts.reads.add(gate.reads if gate else NOTHING, words=False)
        return gate.state if gate else None

    def not_applicable(self, name: str, path: Path = Path.PCIE) -> bool:
        return self._has_state(name, path, GateState.NOT_APPLICABLE)

    def supported(self, hypothesis_id: str) -> bool:
        """For a rule to which any other verdict is as if there were none: another one is not read."""
        return self._has_kind(hypothesis_id, VerdictKind.SUPPORTED)

    def refuted(self, hypothesis_id: str) -> bool:
        return self._has_kind(hypothesis_id, VerdictKind.REFUTED)

    def passed(self, name: str, path: Path = Path.PCIE) -> Gate | None:
        """The gate with its words, where it passes; else it is not read."""
        return self.gate(name, path) if self.passes(name, path) else None

    def failed(self, name: str, path: Path = Path.PCIE) -> Gate | None:
        return self.gate(name, path) if self.fails(name, path) else None

    def passes(self, name: str, path: Path = Path.PCIE) -> bool:
        """For a rule to which any other state is as if the gate were none: another one is not read. That a
        gate does not apply is read, for without what shows it the gate would have a state."""
        return self._has_state(name, path, GateState.PASS)

    def fails(self, name: str, path: Path = Path.PCIE) -> bool:
        return self._has_state(name, path, GateState.FAIL)

    def verdict(self, hypothesis_id: str) -> VerdictKind:
        verdict = self.verdicts.get(hypothesis_id)
        self.facts.reads.add(verdict.reads if verdict else NOTHING, words=False)
        return verdict.kind if verdict else VerdictKind.OPEN

    def claims(self, hypothesis_id: str) -> Verdict | None:
        """The whole verdict, for a rule that goes by what it says."""
        return self._read(self.verdicts.get(hypothesis_id))

    @property
    def single_stream(self) -> Bound | None:
        """The bound at the lowest observed concurrency."""
        return self._read(min(self.bounds, key=lambda b: b.concurrency, default=None))

    def bound_with(self, *parts: str, concurrency: int | None = None) -> Bound | None:
        """The bound there, or at the lowest, where it has these parts; one that lacks a part is not read, but
        for the facts that it lacks."""
        there = (b for b in self.bounds if concurrency in {None, b.concurrency})
        bound = min(there, key=lambda b: b.concurrency, default=None)
        if bound is None or all(getattr(bound, part) for part in parts):
            return self._read(bound)
        self.facts.reads.gaps.update(bound.reads.gaps)
        return None

    @property
    def steps(self) -> tuple[tuple[int, Range | None], ...]:
        """The step in ms at each observed concurrency, without what the bounds say of it."""
        for bound in self.bounds:
            self.facts.reads.add(bound.step_reads)
        return tuple((bound.concurrency, bound.step_ms) for bound in self.bounds)

    def reaches_goal(self, bound: Bound) -> bool | None:
        """Whether P2P could reach the goal at this load: what the bound says of it, with what the person wants."""
        self.facts.reads.add(bound.goal_reads)
        return bound.goal_reachable_by_p2p

    @property
    def every_bound(self) -> tuple[Bound, ...]:
        return tuple(bound for bound in self.bounds if self._read(bound))

    def _gate(self, name: str, path: Path) -> Gate | None:
        return next((gate for gate in self.ladder if gate.gate == name and gate.path is path), None)

    def _has_state(self, name: str, path: Path, state: GateState) -> bool:
        gate = self._gate(name, path)
        return self._if(gate, gate is not None and gate.state is state)

    def _has_kind(self, hypothesis_id: str, kind: VerdictKind) -> bool:
        verdict = self.verdicts.get(hypothesis_id)
        return self._if(verdict, verdict is not None and verdict.kind is kind)

    def _if(self, result: Gate | Verdict | None, holds: bool) -> bool:
        reads = result.reads if result else NOTHING
        applies = not isinstance(result, Gate) or result.state is not GateState.NOT_APPLICABLE
        self.facts.reads.add(Reads(gaps=reads.gaps) if applies and not holds else reads, words=False)
        return holds

    def _read(self, result: Judged) -> Judged:
        if result is not None:
            self.facts.reads.add(result.reads)
        return result
