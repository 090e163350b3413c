"""What a decision can show when it is closed: what was compared across it, and what is missing or does harm.

“Verified” and “no effect” are claims about an effect, so both need a comparison that the gate lets through
(DECISIONS.md, record 54). What nobody compared ends as “not verified”.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agents.benchmark import all_benchmarks
from webapp.diagnosis.case import GateState
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.compare.comparability import comparability
from webapp.diagnosis.compare.fact_comparisons import FactComparison, answered, compare_facts, names_of, title_of
from webapp.diagnosis.compare.kinds import KINDS
from webapp.diagnosis.compare.post_checks import Check, opens_p2p, post_checks, since
from webapp.review import scoring
from webapp.review.before_after import BeforeAfter
from webapp.review.models import Decision, DecisionState
from webapp.review.scoring import History

NAMED = 4
INSTEAD = "Or close it as not verified: the record then says that its effect was not shown."
WHERE = {
    "bench": "measure on “Measure the path”",
    "guest": "read on “Look at the guest”",
    "host": "read on “Ask the host”",
    "vm": "read on “Ask the host”",
}


@dataclass(frozen=True, slots=True)
class Proof:
    """compared: what the gate let through. lacks: sentences; what is missing to call it verified. harm: what
    shows that it has to be undone. checks: of what lets GPUs reach each other."""

    compared: tuple[FactComparison, ...] = ()
    lacks: tuple[str, ...] = ("Nothing was compared across it.",)
    harm: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()

    def refusal(self, state: str) -> str:
        """Why it cannot end like this, with what to do; "" where it can."""
        if state not in {DecisionState.VERIFIED, DecisionState.NO_EFFECT}:
            return ""
        start = f"Not closed as {DecisionState(state).label.lower()}"
        if self.harm:
            return " ".join([f"{start}.", *self.harm]).replace("`", "")  # it is shown as it is
        if state == DecisionState.VERIFIED and self.lacks:
            return " ".join([f"{start}.", *self.lacks, INSTEAD])
        if not self.compared:
            return " ".join([f"{start}: only a comparison shows that.", *self.lacks, INSTEAD])
        return ""

    def as_data(self) -> dict[str, Any]:
        """For the record: plain values."""
        compared = [
            {"what": a.title, "found": a.change, "gate": str(a.gate.verdict), "why": a.gate.why,
             "evidence": list(a.sources)}
            for a in self.compared
        ]  # fmt: skip
        checks = [
            {"what": _benchmark(c.fact_id), "state": str(c.state), "found": c.why,
             "evidence": list(dict.fromkeys(ref.source for ref in c.evidence))}
            for c in self.checks
        ]  # fmt: skip
        texts = {"lacks": list(self.lacks), "harm": list(self.harm)}
        return {"compared": compared, "checks": checks, **texts}


def proof_of(result: BeforeAfter, decision: Decision) -> Proof:
    """result: the two states that were compared for it."""
    turn = result.history.turn(decision)
    if turn is None:
        return Proof(lacks=("It was not carried out yet.",))
    names = _names(decision)
    comparisons = _across(result, names, turn)
    compared = tuple(item for item in comparisons if item.comparable)
    lacks = () if any(i.named and i.tells for i in compared) else tuple(_lacks(result, comparisons, names))
    checks = _checks(result, decision, turn)
    return Proof(compared, (*lacks, *_unchecked(checks)), tuple(_harm(decision, checks)), checks)


def _names(decision: Decision) -> tuple[str, ...]:
    rows = {row["id"]: row["verified_by"] for row in decision.options}
    names = (n for o in scoring.chosen(decision) for n in names_of(rows[o.id], o.changes))
    return tuple(dict.fromkeys(names))


def _across(result: BeforeAfter, names: tuple[str, ...], turn: int) -> tuple[FactComparison, ...]:
    """Empty unless the two states lie on both sides of it."""
    before, after = result.picks
    if not before.epoch < turn <= after.epoch:
        return ()
    along = result.history.between(before.epoch, after.epoch)
    sides = scoring.sides_of(result.facts, result.picks)
    gate = comparability(*sides, scoring.intended(along))
    return compare_facts(result.comparisons, sides, gate, names)


def _lacks(result: BeforeAfter, comparisons: Iterable[FactComparison], names: tuple[str, ...]) -> Iterator[str]:
    """Why what there is does not do, and what would."""
    yield "Nothing that its options name was compared with a result."
    for item in comparisons:
        if item.named and not item.comparable:
            yield f"{item.title}: not comparable, because {item.gate.why}."
        elif item.named and item.fact_id.startswith("bench."):
            yield f"{item.title}: {item.change}."
        elif item.named:
            yield f"{item.title} is as before."
    yield from _to_read(result, names)


def _to_read(result: BeforeAfter, names: tuple[str, ...]) -> Iterator[str]:
    old, new = (side.facts for side in scoring.sides_of(result.facts, result.picks))
    missing = [n for n in names if answered(new, n) is None]
    again = [n for n in missing if answered(old, n) is not None]
    if again:
        yield (
            f"Known from before it, and not read since: {_titles(again)}. To do: {_where(again)}, or paste the output."
        )
    elif not any(answered(old, n) for n in names):
        yield (
            f"From before it there is no output of {_titles(names)}; that cannot be made up for, unless it "
            "is undone, measured and carried out once more."
        )


def _titles(names: Iterable[str]) -> str:
    kinds = {kind.fact.id: kind.title for kind in KINDS}
    titles = list(dict.fromkeys(kinds.get(n) or title_of(n) for n in names))
    return ", ".join(titles[:NAMED]) + (" and others" if len(titles) > NAMED else "")


def _where(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(WHERE[name.partition(".")[0]] for name in list(names)[:NAMED]))


def _checks(result: BeforeAfter, decision: Decision, turn: int) -> tuple[Check, ...]:
    """What was read from it on, until something else was carried out that moves P2P."""
    after = since(result.facts, turn, _until(result.history, turn))
    opens = any(opens_p2p(option, after) for option in scoring.chosen(decision))
    return post_checks(after) if opens else ()


def _until(history: History, turn: int) -> int | None:
    moving = {d.number for d in history.decisions if any(o.moves_p2p for o in scoring.chosen(d))}
    later = [a.epoch for a in history.carried if a.epoch > turn and a.number in moving]
    return min(later, default=None)


def _unchecked(checks: Iterable[Check]) -> Iterator[str]:
    """Each with how it is read."""
    for check in checks:
        if check.state is GateState.UNKNOWN:
            yield (
                f"It lets GPUs reach each other, and “{_benchmark(check.fact_id)}” was not seen to be right "
                f"since: {check.why}. Run it on “Measure the path”, or paste its output."
            )


def _benchmark(fact_id: str) -> str:
    """What the program that measures it is called."""
    named = (b.title for b in all_benchmarks().values() if b.id == fact_id)
    return next(named, title_of(fact_id))


def _harm(decision: Decision, checks: Iterable[Check]) -> Iterator[str]:
    wrong = [check.why for check in checks if check.state is GateState.FAIL]
    if not wrong:
        return
    yield f"Harmful, undo it: {'; '.join(wrong)}. The grant is false: it hangs or corrupts data."
    today = {option.id: option for option in all_options()}
    for option in scoring.chosen(decision):
        if option.moves_p2p and option.id in today:
            yield f"To undo it: {today[option.id].rollback}. Then close it as reverted."
