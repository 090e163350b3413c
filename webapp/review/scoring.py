"""What a decision predicted, and whether it was seen: scored when it is closed, and kept in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agents.facts import ReadingKind
from agents.facts.bench import SERVING
from agents.facts.p2p import P2P_READ
from agents.facts.workload import Observed
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.compare.comparability import Comparability, comparability
from webapp.diagnosis.compare.conditions import Side, facts_in
from webapp.diagnosis.compare.predictions import Chosen, Codes, Score, Seen, Verdict, p2p_scores, throughput_score
from webapp.diagnosis.compare.serving import rung
from webapp.diagnosis.compare.verification import Pick, Verified
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.workload import read_workload
from webapp.records.models import DiagnosisSession
from webapp.review.models import Decision

APPLIED = "changes_applied"


@dataclass(frozen=True, slots=True)
class Applied:
    """A decision that was carried out. epoch: of what was measured from then on. observed: the operator's
    figures until then, as the workload has them."""

    number: int
    epoch: int
    observed: tuple[Mapping[str, Any], ...] = ()


def applied(session: DiagnosisSession) -> tuple[Applied, ...]:
    """In the order they were carried out."""
    rows = session.events.filter(kind=APPLIED).order_by("number").values_list("data", flat=True)
    return tuple(
        Applied(data["number"], data.get("epoch", place), tuple(data.get("observed", ())))
        for place, data in enumerate(rows, 1)
    )


@dataclass(frozen=True, slots=True)
class History:
    """The records of a session by number, and those that were carried out in the order they were."""

    decisions: tuple[Decision, ...]
    carried: tuple[Applied, ...]

    @classmethod
    def of(cls, session: DiagnosisSession) -> History:
        return cls(tuple(session.decisions.order_by("number")), applied(session))

    def turn(self, decision: Decision) -> int | None:
        """The epoch that it began when it was carried out; None before that."""
        return next((a.epoch for a in self.carried if a.number == decision.number), None)

    def between(self, before: int, after: int) -> tuple[Decision, ...]:
        """What was carried out from one epoch to another, the later one's included."""
        low, high = sorted((before, after))
        numbers = {item.number for item in self.carried if low < item.epoch <= high}
        return tuple(decision for decision in self.decisions if decision.number in numbers)


def intended(decisions: Iterable[Decision]) -> frozenset[str]:
    """Ids of the facts that they are meant to change."""
    return frozenset(fact for d in decisions for option in chosen(d) for fact in option.changes)


def chosen(decision: Decision) -> tuple[Chosen, ...]:
    """As the record holds them; what an option changes is looked up, and unknown of a retired one."""
    today = {option.id: option for option in all_options()}
    return tuple(
        Chosen(
            row["id"],
            row["title"],
            tuple(row["predicted_effect"]) if row["predicted_effect"] else None,
            _basis(row),
            today[row["id"]].changes if row["id"] in today else (),
            today[row["id"]].p2p_after if row["id"] in today else None,
        )
        for row in decision.options
        if row["id"] in decision.chosen
    )


def _basis(row: Mapping[str, Any]) -> Basis:
    """Of the claim that has the predicted range, else of the first, which carries the advice."""
    why = [claim for claim in row["why"] if claim.get("basis") in set(Basis)]
    ranged = [c for c in why if row["predicted_effect"] and c["range"] == row["predicted_effect"]]
    claims = [*ranged, *why]
    return Basis(claims[0]["basis"]) if claims else Basis.INFERRED


def scores(
    session: DiagnosisSession,
    history: History,
    decision: Decision,
    facts: Facts,
    picks: tuple[Pick, Pick],
    comparisons: Iterable[Verified],
) -> tuple[Score, ...]:
    """comparisons: what was compared between the two states."""
    sides = sides_of(facts, picks)
    along = history.between(picks[0].epoch, picks[1].epoch)
    others = [d for d in along if d.pk != decision.pk]
    gate = comparability(*sides, intended([decision, *others]))
    options = chosen(decision)
    every = (*options, *(option for other in others for option in chosen(other)))
    mine = {option.id for option in options}
    p2p = [s for s in p2p_scores(every, _codes(sides), gate) if s.options[0] in mine]
    seen, of_serving = _seen(session, history, decision, list(comparisons))
    beside = [f"decision {other.number}" for other in others]
    total = throughput_score(options, seen, of_serving, beside)
    return (*p2p, total) if total else tuple(p2p)


def sides_of(facts: Facts, picks: tuple[Pick, Pick]) -> tuple[Side, Side]:
    """Everything that was read in either epoch."""
    old, new = (facts_in(facts, {pick.epoch}) for pick in picks)
    return Side((), old), Side((), new)


def codes_of(facts: Facts, picks: tuple[Pick, Pick]) -> Codes | None:
    """None unless the driver was asked on both sides."""
    return _codes(sides_of(facts, picks))


def _codes(sides: tuple[Side, Side]) -> Codes | None:
    matrices = [side.facts.value(P2P_READ) for side in sides]
    if matrices[0] is None or matrices[1] is None:
        return None
    old, new = (tuple(sorted(set(m.pairs().values()))) for m in matrices if m)
    return Codes(old, new) if old and new else None


def _seen(
    session: DiagnosisSession, history: History, decision: Decision, comparisons: list[Verified]
) -> tuple[Seen | None, Comparability | None]:
    """A serving benchmark counts before what the operator observed."""
    for item in comparisons:
        rungs = [e for e in item.compared.effects if item.kind.fact is SERVING]
        if rungs:
            lowest = min(rungs, key=lambda e: int(e.path.split()[0]))
            allows = (lowest.low, lowest.high) if lowest.low and lowest.high else None
            runs = " and ".join(map(str, item.compared.runs))
            return Seen(lowest.speedup, allows, f"{lowest.path}, {runs} runs"), item.gate
    return _observed(session, history, decision), None


def _observed(session: DiagnosisSession, history: History, decision: Decision) -> Seen | None:
    """The operator's own figures at the lowest load that is in both; None when they are as they were."""
    was = next((a.observed for a in history.carried if a.number == decision.number), ())
    now = session.workload.get("observed", ())
    if not was or list(was) == list(now):
        return None
    old, new = _points(was), _points(now)
    shared = sorted(old.keys() & new.keys())
    if not shared:
        return None
    before, after = old[shared[0]], new[shared[0]]
    factor = (sum(after) / 2) / (sum(before) / 2)
    ends = (after[0] / before[1], after[1] / before[0])
    ranged = before[0] < before[1] and after[0] < after[1]
    return Seen(factor, ends if ranged else None, f"{rung(shared[0])}, as the operator observed")


def _points(rows: Iterable[Mapping[str, Any]]) -> dict[int, tuple[float, float]]:
    """Output tokens a second by requests at once."""
    try:
        readings = read_workload({"observed": list(rows)})
    except ValueError:  # a table of an older version
        return {}
    points: list[Observed] = [
        point
        for reading in readings
        if reading.kind is ReadingKind.KNOWN and isinstance(reading.value, tuple)
        for point in reading.value
    ]
    return {
        point.concurrency: point.output_tokens_per_s
        for point in points
        if point.output_tokens_per_s and point.output_tokens_per_s[0] > 0
    }


def unconfirmed(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As they count where a record ends as not verified: none as held. What was missed stays."""
    why = "the record was closed as not verified"
    return [
        {**row, "verdict": Verdict.UNDECIDED, "why": why} if row["verdict"] == Verdict.HELD else dict(row)
        for row in rows
    ]


def as_data(scores: Iterable[Score]) -> list[dict[str, Any]]:
    """For the log: plain values."""
    return [{k: list(v) if isinstance(v, tuple) else v for k, v in asdict(s).items()} for s in scores]
