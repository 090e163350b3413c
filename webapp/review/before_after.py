"""Which two states step 8 compares, what was carried out between them, and what that gives."""

from dataclasses import dataclass

from agents.facts import ReadingKind
from agents.facts.p2p import P2P_READ
from webapp.diagnosis.compare.kinds import KINDS, results
from webapp.diagnosis.compare.predictions import Codes, Score
from webapp.diagnosis.compare.verification import Pick, Verified, verified
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation.vm import with_vm
from webapp.records.case_facts import facts_of
from webapp.records.models import DiagnosisSession
from webapp.review import scoring
from webapp.review.models import Decision, DecisionState
from webapp.review.scoring import History
from webapp.review.states import Snapshot

LONGEST = 200


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """before, after: tokens of the states, "e1" or the name of one output; picks: what they take.
    decision: the one that is scored. along: what else was carried out between them.
    facts, history: what the comparisons rest on."""

    before: str
    after: str
    comparisons: tuple[Verified, ...]
    codes: Codes | None
    decision: Decision | None
    along: tuple[Decision, ...]
    scores: tuple[Score, ...]
    facts: Facts
    history: History
    picks: tuple[Pick, Pick]


def outputs(facts: Facts) -> list[Snapshot]:
    """Single outputs that can stand for a state, oldest first."""
    items = [item for kind in KINDS for item in results(facts, kind)]
    items.sort(key=lambda item: (item.epoch, item.order))
    titles = {kind.fact.id: kind.title for kind in KINDS}
    return [
        Snapshot(name, f"{titles[item.reading.fact_id]}, {name}")
        for name, item in {item.source: item for item in items}.items()
    ]


def before_after(session: DiagnosisSession, picked: tuple[str, str], decision: Decision | None = None) -> BeforeAfter:
    """picked: tokens, "" for what the session proposes: the state before `decision`, or else before the
    newest one, and the state after it."""
    facts = with_vm(facts_of(session), session.vmid)
    history = History.of(session)
    scored = decision or _newest(history)
    proposed = _proposed(session, history, facts, scored)
    tokens = [token or usual for token, usual in zip(picked, proposed, strict=True)]
    picks = (_pick(tokens[0], facts), _pick(tokens[1], facts))
    along = history.between(picks[0].epoch, picks[1].epoch)
    comparisons = verified(facts, *picks, scoring.intended(along))
    scores = scoring.scores(session, history, scored, facts, picks, comparisons) if scored in along else ()
    others = tuple(d for d in along if d != scored)
    codes = scoring.codes_of(facts, picks)
    return BeforeAfter(tokens[0], tokens[1], comparisons, codes, scored, others, scores, facts, history, picks)


def _newest(history: History) -> Decision | None:
    """The one that waits to be closed, else the one that was carried out last."""
    last = history.carried[-1].number if history.carried else None
    waiting = [d for d in history.decisions if d.state == DecisionState.APPLIED]
    done = [d for d in history.decisions if d.number == last]
    return next(iter([*reversed(waiting), *done]), None)


def _proposed(session: DiagnosisSession, history: History, facts: Facts, decision: Decision | None) -> tuple[str, str]:
    """The last measured state before the decision, and the first measured one from it on."""
    turn = history.turn(decision) if decision else None
    turn = session.epoch if turn is None else turn
    measured = sorted(_measured(facts))
    earlier = [epoch for epoch in measured if epoch < turn]
    later = [epoch for epoch in measured if epoch >= turn]
    before = earlier[-1] if earlier else max(0, turn - 1)
    return f"e{before}", f"e{later[0] if later else turn}"


def _measured(facts: Facts) -> set[int]:
    kinds = {item.epoch for kind in KINDS for item in results(facts, kind)}
    p2p_reads = (i for i in facts.all(P2P_READ) if i.reading.kind is ReadingKind.KNOWN)
    return kinds | {item.epoch for item in p2p_reads}


def _pick(token: str, facts: Facts) -> Pick:
    """A token that names nothing takes nothing."""
    if token[:1] == "e" and token[1:].isdecimal():
        return Pick(epoch=int(token[1:10]))
    named = (i for group in facts.readings.values() for i in group if i.source == token)
    item = next(named, None)
    return Pick(item.epoch if item else -1, token[:LONGEST])
