"""What was before: the machine's other states, sessions like this one, and what predictions were worth."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field

from webapp.api.asking import session_of
from webapp.api.auth import READ
from webapp.api.routes.reasoning import plain
from webapp.diagnosis.compare.changed import changed
from webapp.review.calibration import scored
from webapp.review.memory import seen_before
from webapp.review.scoring import applied
from webapp.review.snapshots import epochs, facts_at, times
from webapp.triage.diagnoses import session_diagnosis
from webapp.triage.views.shell import acting

router = Router(tags=["what was before"])
S = "/sessions/{uuid:session_id}"
Json = dict[str, Any]


class State(BaseModel):
    """token: names it in `before` and `after`."""

    token: str
    title: str


class Ends(BaseModel):
    """Tokens of two states; "" for the first and the last."""

    before: str = Field("", max_length=40)
    after: str = Field("", max_length=40)


class Changes(BaseModel):
    """states: after each change; moments: minutes in which something was read. found: what differs, what can
    matter for P2P first, and what was not read again."""

    before: str
    after: str
    states: list[State]
    moments: list[State]
    found: Json


class Like(BaseModel):
    """same: what else is the same, beside GPU and verdict. decisions: numbers and how they ended.
    without_comparison: those whose end is a claim about their effect that nothing kept with them shows."""

    session: UUID
    title: str
    same: list[str]
    decisions: dict[int, str]
    without_comparison: list[int]


class Memory(BaseModel):
    """n: how many there are, at most 1000; alike: the most alike of them. Other machines prove nothing
    about this one."""

    gpu: str
    verdict: str
    n: int
    alike: list[Like]


class Prediction(BaseModel):
    session: UUID
    decision: int
    score: Json


@router.get(S + "/changes", auth=READ, response=Changes)
def read_changes(request: HttpRequest, session_id: UUID, asked: Query[Ends]) -> Changes:
    """What is different between two states of the machine."""
    session = session_of(request, session_id)
    states, moments = epochs(session, applied(session)), times(session)
    before = asked.before or states[0].token
    after = asked.after or (moments or states)[-1].token
    known = facts_at(session, [before, after])
    if known is None:
        raise Http404
    return Changes(
        before=before,
        after=after,
        states=[State(token=one.token, title=one.title) for one in states],
        moments=[State(token=one.token, title=one.title) for one in moments],
        found=plain(changed(*known)),
    )


@router.get(S + "/alike", auth=READ, response=Memory | None)
def read_alike(request: HttpRequest, session_id: UUID) -> Memory | None:
    """Sessions with the same GPU and verdict that you may see; null while this one has none."""
    session = session_of(request, session_id)
    found = seen_before(session, acting(request), session_diagnosis(session))
    if found is None:
        return None
    alike = [
        Like(
            session=one.session.pk,
            title=one.session.title,
            same=list(one.same),
            decisions={d.decision.number: str(d.decision.state) for d in one.decided},
            without_comparison=[d.decision.number for d in one.decided if d.decision.without_comparison],
        )
        for one in found.alike
    ]
    return Memory(gpu=found.gpu, verdict=found.verdict, n=found.n, alike=alike)


@router.get("/calibration", auth=READ, response=list[Prediction])
def read_calibration(request: HttpRequest) -> list[Prediction]:
    """The scores of predictions in the decisions closed last, over all sessions you may see."""
    return [
        Prediction(session=one.session.pk, decision=one.number, score=plain(one.score))
        for one in scored(acting(request))
    ]
