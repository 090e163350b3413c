"""The decisions that the page of an approving link shows."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists

from webapp.diagnosis.facts import Facts
from webapp.handoff.models import Link
from webapp.review.decisions import superseded_pins
from webapp.review.disputes import bearing_on
from webapp.review.models import Approval, Comment, Decision, DecisionState
from webapp.review.threads import Thread, threads_of
from webapp.review.workflow import opened_by_proposer


@dataclass(frozen=True, slots=True)
class Proposal:
    """One record as the page shows it. said: the last word given on it by this link. stale: facts it rests
    on that newer evidence tells. spent: its proposer opened this link, which is no second person then.
    disputes: open on it or on what it chose."""

    decision: Decision
    approval: Approval | None
    stale: tuple[str, ...]
    spent: bool
    disputes: tuple[Thread, ...] = ()

    @property
    def chosen(self) -> list[dict[str, Any]]:
        return [one for one in self.decision.options if one["id"] in self.decision.chosen]

    @property
    def others(self) -> list[dict[str, Any]]:
        return [one for one in self.decision.options if one["id"] not in self.decision.chosen]

    @property
    def is_open(self) -> bool:
        return self.decision.state == DecisionState.PROPOSED


def proposals(link: Link, facts: Facts) -> list[Proposal]:
    """Decisions proposed for the host now, and those judged through this link, newest first."""
    if not link.may_approve:
        return []
    judgements = {approval.decision_id: approval for approval in link.approvals.order_by("id")}
    disputed = Exists(Comment.objects.filter(session=link.session, stance="dispute"))
    rows = link.session.decisions.select_related("proposed_by").annotate(disputed=disputed)
    rows = rows.order_by("-number")
    threads = threads_of(link.session) if any(vars(d)["disputed"] for d in rows) else []
    decisions = [d for d in rows if d.pk in judgements or _awaits_approval(d)]
    return [
        Proposal(
            decision,
            judgements.get(decision.pk),
            tuple(superseded_pins(decision, facts)),
            opened_by_proposer(link, decision),
            tuple(bearing_on(decision, threads)),
        )
        for decision in decisions
    ]


def _awaits_approval(decision: Decision) -> bool:
    return decision.state == DecisionState.PROPOSED and decision.affects_host
