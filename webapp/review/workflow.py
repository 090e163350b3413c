"""How a record moves: proposed, approved by others, carried out, and what came of it.

Who may: an operator proposes and says what was done; a reviewer approves, rejects or wants changes, never of
what they proposed themselves. What is open in dispute is approved only by who says that they know. A record
that nobody else has to carry out is approved when it is proposed. The host's admin may judge by a link that
allows it (DECISIONS.md, record 31); all links together count as one person.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F

from webapp.accounts.models import User
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.records.models import DiagnosisSession, Event
from webapp.records.models.link import Link
from webapp.review.closing_evidence import Proof
from webapp.review.decisions import DecisionError, pin, superseded_pins, version_keep
from webapp.review.disputes import disputes_on
from webapp.review.models import Approval, Decision, DecisionState, Word
from webapp.review.recent_change import became
from webapp.review.scoring import unconfirmed

S = DecisionState
MOVES: dict[DecisionState, frozenset[DecisionState]] = {
    S.DRAFT: frozenset({S.PROPOSED, S.SUPERSEDED}),
    S.PROPOSED: frozenset({S.APPROVED, S.REJECTED, S.DRAFT, S.SUPERSEDED}),
    S.APPROVED: frozenset({S.APPLIED, S.PROPOSED, S.SUPERSEDED}),
    S.REJECTED: frozenset({S.DRAFT, S.SUPERSEDED}),
    S.APPLIED: frozenset({S.VERIFIED, S.NO_EFFECT, S.NOT_VERIFIED, S.REVERTED}),
    S.VERIFIED: frozenset({S.REVERTED}),
    S.NO_EFFECT: frozenset({S.REVERTED}),
    S.NOT_VERIFIED: frozenset({S.REVERTED}),
    S.REVERTED: frozenset(),
    S.SUPERSEDED: frozenset(),
}
CLOSED = frozenset({S.VERIFIED, S.NO_EFFECT, S.NOT_VERIFIED, S.REVERTED})
OPEN = frozenset({S.DRAFT, S.PROPOSED, S.APPROVED, S.REJECTED})


@dataclass(frozen=True, slots=True)
class ByLink:
    """The host's admin. name: who they say they are; nothing but the link vouches for it."""

    link: Link
    name: str


def needed(decision: Decision) -> int:
    """How many other people have to approve it."""
    return decision.session.quorum if decision.affects_host else 0


def approvals_of(decision: Decision) -> list[Approval]:
    """Every word that was said on it, oldest first, with who said it."""
    words = decision.approvals.select_related("by", "link__made_by")
    return list(words.prefetch_related("link__opened_by"))


def counting(decision: Decision, approvals: Iterable[Approval] | None = None) -> list[Approval]:
    """The newest word of each person on the record as it stands, the proposer's never. What came by links
    is one person's: several can be made for one, and nobody signed in. approvals: `approvals_of` it, where
    they were read already."""
    newest: dict[int | None, Approval] = {}
    content = decision.content_sha256
    for approval in approvals_of(decision) if approvals is None else approvals:
        if approval.content_sha256 == content and not _proposers_own(approval, decision):
            newest[approval.by_id] = approval
    return [approval for approval in newest.values() if approval.word != Word.WITHDRAWN]


def _proposers_own(approval: Approval, decision: Decision) -> bool:
    """Also by a link that the proposer opened: then it may be in their hands."""
    if approval.by_id is not None:
        return approval.by_id == decision.proposed_by_id
    return approval.link is not None and opened_by_proposer(approval.link, decision)


def opened_by_proposer(link: Link, decision: Decision) -> bool:
    return any(user.pk == decision.proposed_by_id for user in link.opened_by.all())


def decision_propose(decision: Decision, *, user: User) -> None:
    """Raises DecisionError when it is no draft. What it supersedes is out from now on."""
    with transaction.atomic():
        _move(decision, S.PROPOSED, proposed_by=user)
        version_keep(decision, user=user)
        Event.record(decision.session, "decision_proposed", user, number=decision.number)
        if decision.supersedes and decision.supersedes.state in OPEN:
            _move(decision.supersedes, S.SUPERSEDED)
        _approve_when_enough(decision)


def decision_withdraw(decision: Decision, *, user: User) -> None:
    """Back to a draft, to be changed. Raises DecisionError."""
    with transaction.atomic():
        _move(decision, S.DRAFT)
        Event.record(decision.session, "decision_withdrawn", user, number=decision.number)


def decision_judge(
    decision: Decision,
    *,
    word: Word,
    reason: str,
    facts: Facts,
    by: User | ByLink,
    seen: str = "",
    despite: bool = False,
) -> None:
    """One person's word; their newest counts. seen: the `content_sha256` of the record as they read it, ""
    when that is not known. despite: they know of the open disputes. Raises DecisionError."""
    with transaction.atomic():
        Decision.objects.select_for_update().get(pk=decision.pk)
        decision.refresh_from_db()
        _may_judge(decision, by)
        _can_be_judged(decision, word, by, reason, facts, seen)
        disputes = _despite(decision, despite) if word == Word.APPROVED else 0
        who = {"label": by.name, "link": by.link} if isinstance(by, ByLink) else {"by": by}
        Approval.objects.create(
            decision=decision,
            word=word,
            reason=reason,
            content_sha256=decision.content_sha256,
            disputes=disputes,
            **who,
        )
        _record_judged(decision, word, by, {"disputes": disputes} if disputes else {})
        if word == Word.REJECTED:
            _move(decision, S.REJECTED)
        else:
            _approve_when_enough(decision)


def _may_judge(decision: Decision, by: User | ByLink) -> None:
    if decision.state != S.PROPOSED:
        raise DecisionError(f"Your word was not taken: {became(decision)}")
    if isinstance(by, User):
        if by.pk == decision.proposed_by_id:
            raise DecisionError("You proposed it; somebody else has to look at it.")
        return
    if not by.link.may_approve:
        raise DecisionError("This link is not for approving.")
    if opened_by_proposer(by.link, decision):
        proposer = decision.proposed_by.username
        raise DecisionError(
            f"{proposer}, who proposed it, opened this link too: it is no second person’s. Ask for a new one."
        )
    if not by.name:
        raise DecisionError("Say who you are; the record has only this.")
    if decision.proposed_by.username.casefold() in {by.name.casefold(), by.link.person.casefold()}:
        raise DecisionError("Who proposed it is no second person; somebody else has to look at it.")


def _can_be_judged(decision: Decision, word: Word, by: User | ByLink, reason: str, facts: Facts, seen: str) -> None:
    if seen and seen != decision.content_sha256:
        raise DecisionError(f"It has changed since you opened the page: {became(decision)} Read it again.")
    if word == Word.WITHDRAWN and not _has_said(decision, by):
        raise DecisionError("You have said nothing on it as it stands.")
    if word in {Word.REJECTED, Word.CHANGES_WANTED} and not reason.strip():
        raise DecisionError("Say why not, in a sentence; the proposer has only this.")
    if word == Word.APPROVED and (stale := superseded_pins(decision, facts)):
        raise DecisionError(f"Newer evidence counts now for {', '.join(stale[:5])}: it has to be renewed first.")


def _has_said(decision: Decision, by: User | ByLink) -> bool:
    words = counting(decision)
    if isinstance(by, User):
        return any(approval.by_id == by.pk for approval in words)
    return any(approval.link_id == by.link.pk for approval in words)


def _despite(decision: Decision, known: bool) -> int:
    """How many disputes it is approved in spite of. Raises DecisionError where they are not known."""
    count = len(disputes_on(decision))
    if count and not known:
        are = "1 dispute is" if count == 1 else f"{count} disputes are"
        raise DecisionError(f"{are} open on it: tick that you approve it all the same, or answer first.")
    return count


_EVENTS = {
    Word.APPROVED: "decision_approved",
    Word.REJECTED: "decision_rejected",
    Word.CHANGES_WANTED: "decision_changes_wanted",
    Word.WITHDRAWN: "decision_word_withdrawn",
}


def _record_judged(decision: Decision, word: Word, by: User | ByLink, more: Mapping[str, Any]) -> None:
    kind = _EVENTS[word]
    if isinstance(by, User):
        Event.record(decision.session, kind, by, number=decision.number, **more)
        return
    made = {"link_of": by.link.person, "link_made_by": by.link.made_by.username}
    about = {"number": decision.number, "person": by.name, **made, **more}
    Event.record(decision.session, kind, None, **about)


def decision_renew(decision: Decision, *, user: User, result: Diagnosis) -> None:
    """Pins today's evidence and asks for approval again. Raises DecisionError."""
    with transaction.atomic():
        if decision.state == S.APPROVED:
            _move(decision, S.PROPOSED)
        pin(decision, result)
        if decision.state != S.PROPOSED:
            raise DecisionError(f"It is {decision.get_state_display()}; there is nothing to renew.")
        Decision.objects.filter(pk=decision.pk).update(**decision.content.columns)
        version_keep(decision, user=user)
        Event.record(decision.session, "decision_renewed", user, number=decision.number)
        _approve_when_enough(decision)


def decision_apply(decision: Decision, *, user: User, facts: Facts) -> None:
    """It was carried out: evidence from now on is “after”. Raises DecisionError."""
    if stale := superseded_pins(decision, facts):
        raise DecisionError(f"Newer evidence counts now for {', '.join(stale[:5])}: renew the record first.")
    with transaction.atomic():
        _move(decision, S.APPLIED)
        DiagnosisSession.objects.filter(pk=decision.session_id).update(epoch=F("epoch") + 1)
        now = DiagnosisSession.objects.get(pk=decision.session_id)
        # What the operator observed until now is kept: the form holds only the newest figures.
        seen = {"epoch": now.epoch, "observed": now.workload.get("observed", [])}
        Event.record(decision.session, "changes_applied", user, number=decision.number, **seen)


def decision_close(
    decision: Decision, *, user: User, state: str, outcome: str, proof: Proof, scores: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Ends an applied decision as verified, no effect, not verified or reverted. proof: kept with it, and
    without enough of it some ends are refused. scores: of its predictions, kept with the event. Neither
    is when a closed one is reverted later. Raises DecisionError."""
    if state not in CLOSED:
        raise DecisionError("Close it as verified, no effect, not verified or reverted.")
    if not outcome.strip():
        raise DecisionError("Say what was seen, in a sentence.")
    open_yet = decision.state == S.APPLIED
    if open_yet and (refusal := proof.refusal(state)):
        raise DecisionError(refusal)
    kept_scores = unconfirmed(scores) if state == S.NOT_VERIFIED else list(scores)
    with_scores = {"scores": kept_scores} if open_yet and kept_scores else {}
    with_proof = {"proof": proof.as_data()} if open_yet else {}
    with transaction.atomic():
        _move(decision, DecisionState(state), outcome=outcome, **with_proof)
        about = {"number": decision.number, "state": state, **with_scores}
        Event.record(decision.session, "decision_closed", user, **about)


def _approve_when_enough(decision: Decision) -> None:
    if sum(approval.approves for approval in counting(decision)) >= needed(decision):
        _move(decision, S.APPROVED)


def _move(decision: Decision, state: DecisionState, **values: Any) -> None:
    """One conditional UPDATE: of two at once, one is told. Raises DecisionError."""
    allowed = [old for old, nexts in MOVES.items() if state in nexts]
    won = Decision.objects.filter(pk=decision.pk, state__in=allowed).update(state=state, **values)
    decision.refresh_from_db()
    if not won:
        raise DecisionError(f"It is {decision.get_state_display()} already.")
