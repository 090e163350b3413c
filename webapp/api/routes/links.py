"""Links for the host's admin, who has no account."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from webapp.accounts.models import Role
from webapp.api.auth import READ, WRITE
from webapp.api.declared import filled
from webapp.api.idempotency import remembered
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError
from webapp.api.request_context import Sent, session_of, user_of
from webapp.handoff.models import Answer, Link
from webapp.handoff.plan import phases_to_ask
from webapp.handoff.purpose import LONGEST_PURPOSE, purpose
from webapp.handoff.retraction import NotTheirsError, set_aside
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.models.link import NOBODY
from webapp.records.models.session import stands

router = Router(tags=["links"])
L = "/sessions/{uuid:session_id}/links"


class Door(BaseModel):
    """steps: how far it got, each with its time. open: neither expired nor revoked,
    and it stands: who made it may still ask in the session. may_approve: its page
    takes a word on what is proposed for the host. declined_at: when the person said that it cannot be done,
    for the reason declined_why, "" where none was given; null once they sent something."""

    id: UUID
    person: str
    purpose: str
    phases: list[str]
    may_approve: bool
    made_by: str
    open: bool
    stands: bool
    expires_at: datetime
    steps: dict[str, datetime | None]
    declined_at: datetime | None
    declined_why: str


class NewDoor(Door):
    """address: shown once; null when an answer is repeated, since only its hash is kept."""

    address: str | None


class Came(BaseModel):
    """An output that came by a link. understood: how many outputs were recognised in it. counts: false once
    it was set aside. taken_back_at: when who sent it took it back; it cannot be made to count again."""

    id: int
    evidence: str
    understood: int
    phase: str
    at: datetime
    counts: bool
    taken_back_at: datetime | None


class Counting(Sent):
    """counts: true takes it back."""

    counts: bool = False


class Asking(Sent):
    """purpose: "" for one made from the diagnosis. phases: of the plan, whose scripts its page offers."""

    person: str = Field(NOBODY, min_length=1, max_length=80)
    purpose: str = Field("", max_length=LONGEST_PURPOSE)
    hours: Literal[24, 72, 168, 336] = 72
    phases: list[str] = Field([], max_length=20)
    may_approve: bool = False


def _door(link: Link) -> Door:
    steps = {str(step): at for step, at in link.steps}
    return filled(Door, link, made_by=link.made_by.username, open=link.is_open, steps=steps)


@router.get(L, auth=READ, response=Page[Door])
def list_links(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Door]:
    """The session's links, the newest first, without their addresses."""
    rows = session_of(request, session_id).links.annotate(standing=stands()).select_related("made_by")
    records, following = page(rows, query, by="asked_at")
    return Page[Door](items=[_door(one) for one in records], next=following)


def _came(answer: Answer) -> Came:
    return Came(
        id=answer.pk,
        evidence=answer.evidence.name,
        understood=answer.understood,
        phase=answer.phase,
        at=answer.at,
        counts=answer.evidence.set_aside_at is None,
        taken_back_at=answer.taken_back_at,
    )


def _answers(session: DiagnosisSession) -> QuerySet[Answer]:
    answers = Answer.objects.filter(link__session=session).select_related("link__session", "evidence")
    return answers.defer("evidence__body", "evidence__stderr")


@router.post(L, auth=WRITE, response={201: NewDoor})
@remembered(without="address")
def make_link(request: HttpRequest, session_id: UUID, sent: Asking) -> Status[NewDoor]:
    """Makes a link. Whoever has its address may answer and, with may_approve, judge what is proposed for
    the host; nothing else."""
    session = session_of(request, session_id, Role.OPERATOR)
    result = session_diagnosis(session)
    if wrong := set(sent.phases) - {phase.id for phase in phases_to_ask(result, session.vmid)}:
        raise RefusedError(422, f"Not to be asked for now: {', '.join(sorted(wrong))}")
    link, token = Link.make(
        session,
        made_by=user_of(request),
        person=sent.person,
        purpose=sent.purpose.strip() or purpose(result, session.vmid),
        hours=sent.hours,
        phases=sent.phases,
        may_approve=sent.may_approve,
    )
    address = f"{settings.PUBLIC_URL}/link/{token}"
    return Status(201, NewDoor(address=address, **_door(link).model_dump()))


@router.post(L + "/{uuid:link_id}/revoke", auth=WRITE, response=Door)
def revoke_link(request: HttpRequest, session_id: UUID, link_id: UUID) -> Door:
    """Closes the link; what came by it stays."""
    session = session_of(request, session_id, Role.OPERATOR)
    get_object_or_404(session.links, pk=link_id).revoke(user_of(request))
    return _door(get_object_or_404(session.links, pk=link_id))


@router.post(L + "/{uuid:link_id}/accept", auth=WRITE, response=Door)
def accept_link(request: HttpRequest, session_id: UUID, link_id: UUID) -> Door:
    """Says that what came is what was needed; the link's page says so too."""
    session = session_of(request, session_id, Role.OPERATOR)
    get_object_or_404(session.links, pk=link_id).accept(user_of(request))
    return _door(get_object_or_404(session.links, pk=link_id))


@router.get("/sessions/{uuid:session_id}/answers", auth=READ, response=Page[Came])
def list_answers(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Came]:
    """What came by links, the newest first."""
    records, following = page(_answers(session_of(request, session_id)), query, by="id")
    return Page[Came](items=[_came(one) for one in records], next=following)


@router.post("/sessions/{uuid:session_id}/answers/{int:answer_id}/set-aside", auth=WRITE, response=Came)
def set_answer_aside(request: HttpRequest, session_id: UUID, answer_id: int, sent: Counting) -> Came:
    """Says that this output is not what was asked: nothing read from it counts. It is kept."""
    answers = _answers(session_of(request, session_id, Role.OPERATOR))
    answer = get_object_or_404(answers, pk=answer_id)
    try:
        set_aside(answer, user_of(request), counts=sent.counts)
    except NotTheirsError as error:
        raise RefusedError(409, str(error)) from error
    return _came(answers.get(pk=answer_id))
