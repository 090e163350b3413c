"""How a record moves: proposed, approved by others, carried out, and what came of it.

Who may: an operator proposes and says what was done; a reviewer approves or rejects, never what they
proposed themselves. A record that nobody else has to carry out is approved when it is proposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F

from webapp.accounts.models import User
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.review.decisions import CONTENT, DecisionError, pin, superseded_pins
from webapp.review.models import Approval, Decision, DecisionState
from webapp.triage.models import DiagnosisSession, Event

S = DecisionState
MOVES: dict[DecisionState, frozenset[DecisionState]] = {
    S.DRAFT: frozenset({S.PROPOSED, S.SUPERSEDED}),
    S.PROPOSED: frozenset({S.APPROVED, S.REJECTED, S.DRAFT, S.SUPERSEDED}),
    S.APPROVED: frozenset({S.APPLIED, S.PROPOSED, S.SUPERSEDED}),
    S.REJECTED: frozenset({S.DRAFT, S.SUPERSEDED}),
    S.APPLIED: frozenset({S.VERIFIED, S.NO_EFFECT, S.REVERTED}),
    S.VERIFIED: frozenset({S.REVERTED}),
    S.NO_EFFECT: frozenset({S.REVERTED}),
    S.REVERTED: frozenset(),
    S.SUPERSEDED: frozenset(),
}
CLOSED = frozenset({S.VERIFIED, S.NO_EFFECT, S.REVERTED})
OPEN = frozenset({S.DRAFT, S.PROPOSED, S.APPROVED, S.REJECTED})


def needed(decision: Decision) -> int:
    """How many other people have to approve it."""
    return decision.session.quorum if decision.affects_host else 0


def counting(decision: Decision) -> list[Approval]:
    """The newest word of each person on the record as it stands."""
    newest: dict[str, Approval] = {}
    for approval in decision.approvals.select_related("by"):
        if approval.content_sha256 == decision.content_sha256:
            newest[approval.who] = approval
    return list(newest.values())


def decision_propose(decision: Decision, *, user: User) -> None:
    """Raises DecisionError when it is no draft. What it supersedes is out from now on."""
    with transaction.atomic():
        _move(decision, S.PROPOSED, proposed_by=user)
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
    approves: bool,
    reason: str,
    facts: Facts,
    user: User | None = None,
    label: str = "",
) -> None:
    """One person's yes or no; user None: by the host admin's link `label`. Raises DecisionError."""
    _may_judge(decision, user, approves, reason, facts)
    with transaction.atomic():
        Decision.objects.select_for_update().get(pk=decision.pk)
        Approval.objects.create(
            decision=decision,
            by=user,
            label=label,
            approves=approves,
            reason=reason,
            content_sha256=decision.content_sha256,
        )
        kind = "decision_approved" if approves else "decision_rejected"
        who = {} if user else {"by": label}
        Event.record(decision.session, kind, user, number=decision.number, **who)
        if not approves:
            _move(decision, S.REJECTED)
        else:
            _approve_when_enough(decision)


def _may_judge(
    decision: Decision, user: User | None, approves: bool, reason: str, facts: Facts
) -> None:
    if decision.state != S.PROPOSED:
        raise DecisionError(f"It is {decision.get_state_display()}; only a proposal is judged.")
    if user is not None and user.pk == decision.proposed_by_id:
        raise DecisionError("You proposed it; somebody else has to look at it.")
    if not approves and not reason.strip():
        raise DecisionError("Say why not, in a sentence; the proposer has only this.")
    if approves and (stale := superseded_pins(decision, facts)):
        raise DecisionError(
            f"Newer evidence counts now for {', '.join(stale[:5])}: it has to be renewed first."
        )


def decision_renew(decision: Decision, *, user: User, result: Diagnosis) -> None:
    """Pins today's evidence and asks for approval again. Raises DecisionError."""
    with transaction.atomic():
        if decision.state == S.APPROVED:
            _move(decision, S.PROPOSED)
        pin(decision, result)
        if decision.state != S.PROPOSED:
            raise DecisionError(f"It is {decision.get_state_display()}; there is nothing to renew.")
        content = {name: getattr(decision, name) for name in CONTENT}
        Decision.objects.filter(pk=decision.pk).update(**content)
        Event.record(decision.session, "decision_renewed", user, number=decision.number)
        _approve_when_enough(decision)


def decision_apply(decision: Decision, *, user: User, facts: Facts) -> None:
    """It was carried out: evidence from now on is “after”. Raises DecisionError."""
    if stale := superseded_pins(decision, facts):
        raise DecisionError(
            f"Newer evidence counts now for {', '.join(stale[:5])}: renew the record first."
        )
    with transaction.atomic():
        _move(decision, S.APPLIED)
        DiagnosisSession.objects.filter(pk=decision.session_id).update(epoch=F("epoch") + 1)
        now = DiagnosisSession.objects.get(pk=decision.session_id)
        # What the operator observed until now is kept: the form holds only the newest figures.
        seen = {"epoch": now.epoch, "observed": now.workload.get("observed", [])}
        Event.record(decision.session, "changes_applied", user, number=decision.number, **seen)


def decision_close(
    decision: Decision,
    *,
    user: User,
    state: str,
    outcome: str,
    scores: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Ends an applied decision as verified, no effect or reverted. scores: of its predictions, kept with
    the event; not when a closed one is reverted later. Raises DecisionError."""
    if state not in CLOSED:
        raise DecisionError("Close it as verified, no effect or reverted.")
    if not outcome.strip():
        raise DecisionError("Say what was seen, in a sentence.")
    told = {"scores": list(scores)} if decision.state == S.APPLIED and scores else {}
    with transaction.atomic():
        _move(decision, DecisionState(state), outcome=outcome)
        about = {"number": decision.number, "state": state, **told}
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
