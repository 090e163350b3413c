"""Was what a decision predicted seen? Held, missed or undecided, for the throughput and for P2P.

A throughput prediction is a range of factors. It held when all of what the measurement allows lies inside,
and missed when none of it does; a margin of 5 % either way is of no use to anyone and counts as inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from agents.facts.p2p import P2P_READ, P2pCode
from webapp.diagnosis.claim import Basis, Range
from webapp.diagnosis.compare.comparability import Comparability, Gate
from webapp.diagnosis.compare.effects import MARGIN, SINGLE_RUN_NOISE
from webapp.diagnosis.wording import span

P2P, THROUGHPUT = "P2P status", "throughput"
# What the driver takes into its answer about peers (NVIDIA open kernel modules 595.45, p2p_caps.c).
ENTERS_P2P = frozenset({"driver", "GPUs", "CPU type of the VM", "args of the VM"})


class Verdict(StrEnum):
    HELD = "held"
    MISSED = "missed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Chosen:
    """An option as a decision chose it. effect: the factor on throughput it then predicted, None: none.

    changes, p2p_after: as its Option declares them.
    """

    id: str
    title: str
    effect: Range | None
    basis: Basis
    changes: tuple[str, ...] = ()
    p2p_after: P2pCode | None = None

    @property
    def moves_p2p(self) -> bool:
        return P2P_READ.id in self.changes


@dataclass(frozen=True, slots=True)
class Seen:
    """A measured factor of the throughput. allows: what it may be within, None: one run each."""

    factor: float
    allows: Range | None
    how: str

    @property
    def range(self) -> Range:
        wide = (self.factor / SINGLE_RUN_NOISE, self.factor * SINGLE_RUN_NOISE)
        return self.allows or wide


@dataclass(frozen=True, slots=True)
class Codes:
    """The driver's answers about peer reads, each once."""

    before: tuple[P2pCode, ...]
    after: tuple[P2pCode, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """One prediction against what was seen. predicted_range, seen_range: factors of the throughput."""

    what: str
    options: tuple[str, ...]
    basis: Basis
    predicted: str
    seen: str
    verdict: Verdict
    why: str
    predicted_range: Range | None = None
    seen_range: Range | None = None


def p2p_scores(chosen: Sequence[Chosen], codes: Codes | None, gate: Comparability) -> tuple[Score, ...]:
    """One for each option that predicts the driver's answer."""
    strayed = sorted(ENTERS_P2P & set(gate.unmeant))
    scores = []
    for option in chosen:
        if option.p2p_after is None and (option.moves_p2p or not option.changes):
            continue
        others_move = any(o.moves_p2p for o in chosen if o is not option)
        verdict, why = _p2p_verdict(option, codes, others_move)
        if strayed and codes:
            verdict, why = Verdict.UNDECIDED, f"{', '.join(strayed)} changed too"
        predicted = str(option.p2p_after or "unchanged")
        seen = f"{_code_list(codes.before)} → {_code_list(codes.after)}" if codes else "not read"
        scores.append(Score(P2P, (option.id,), option.basis, predicted, seen, verdict, why))
    return tuple(scores)


def _p2p_verdict(option: Chosen, codes: Codes | None, others_move: bool) -> tuple[Verdict, str]:
    if codes is None:
        return Verdict.UNDECIDED, "topo -p2p was not read on both sides"
    if option.p2p_after is not None:
        held = set(codes.after) == {option.p2p_after}
        return _verdict_of(held), f"{_code_list(codes.after)} on the pairs afterwards"
    if codes.before == codes.after:
        return Verdict.HELD, f"{_code_list(codes.after)} before and after"
    if others_move:
        return Verdict.UNDECIDED, "it changed, and something else was carried out to change it"
    return Verdict.MISSED, f"{_code_list(codes.before)} became {_code_list(codes.after)}"


def _verdict_of(held: bool) -> Verdict:
    return Verdict.HELD if held else Verdict.MISSED


def _code_list(codes: tuple[P2pCode, ...]) -> str:
    return ", ".join(codes)


def throughput_score(
    chosen: Sequence[Chosen], seen: Seen | None, gate: Comparability | None, beside: Sequence[str]
) -> Score | None:
    """One score for all options, because they were measured together; None when none predicts a throughput.

    beside: what else was carried out between the two states. gate: of the serving measurement, None where the
    operator's own figures are compared.
    """
    predicting = [option for option in chosen if option.effect]
    if not predicting:
        return None
    low, high = (prod(option.effect[i] for option in predicting if option.effect) for i in (0, 1))
    silent = [option.title for option in chosen if option.changes and not option.effect]
    verdict, why = _throughput_verdict((low, high), seen, gate, [*silent, *beside])
    ids = tuple(option.id for option in predicting)
    basis = max((option.basis for option in predicting), key=list(Basis).index)
    predicted = f"{span((low, high), 2)} ×"
    measured = f"{seen.factor:.2f} × ({seen.how})" if seen else "not measured"
    ranges = (low, high), seen.range if seen else None
    return Score(THROUGHPUT, ids, basis, predicted, measured, verdict, why, *ranges)


def _throughput_verdict(
    predicted: Range, seen: Seen | None, gate: Comparability | None, unpredicted: Sequence[str]
) -> tuple[Verdict, str]:
    if seen is None:
        return Verdict.UNDECIDED, "the workload was not measured on both sides"
    if gate and gate.verdict is Gate.NOT_COMPARABLE:
        return Verdict.UNDECIDED, f"not comparable: {gate.why}"
    if gate and gate.unmeant:
        return Verdict.UNDECIDED, f"{', '.join(gate.unmeant)} changed too"
    if unpredicted:
        return Verdict.UNDECIDED, f"carried out along, and not predicted: {', '.join(unpredicted)}"
    low, high = predicted[0] / (1 + MARGIN), predicted[1] * (1 + MARGIN)
    within = f"{span(seen.range, 2)} × with what runs differ by"
    if low <= seen.range[0] and seen.range[1] <= high:
        return Verdict.HELD, within
    if seen.range[1] < low or high < seen.range[0]:
        return Verdict.MISSED, within
    return Verdict.UNDECIDED, f"{within}, which is partly inside what was predicted"
