"""What waits for who asks, what was said to them, and what they are told of by mail."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from webapp.api.asking import Sent
from webapp.api.auth import READ, WRITE
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError
from webapp.api.routes.comments import Said, shown
from webapp.handoff.coming import to_accept
from webapp.handoff.models import Link
from webapp.notices.choosing import choose, chosen_by
from webapp.notices.kinds import KINDS
from webapp.review.models import Approval
from webapp.review.waiting import MOST, all_seen, asked_of, named, said_of_mine, to_judge
from webapp.triage.views.shell import acting

router = Router(tags=["for me"])


class ToJudge(BaseModel):
    """my_word: what you said last of an earlier version, null for nothing; content_changed: whether its text
    is another one since. proposed_at: null for a record from before versions were kept."""

    session: UUID
    decision: int
    title: str
    proposed_by: str
    proposed_at: datetime | None
    my_word: str | None
    content_changed: bool


class ToAccept(BaseModel):
    """Something came by this link, and nobody has accepted it."""

    session: UUID
    link: UUID
    person: str
    received_at: datetime | None


class AskedFor(BaseModel):
    """test: the id of the measurement; comment: that asks for it."""

    test: str
    comment: Said


class ForMe(BaseModel):
    """At most 100 of each, the newest first."""

    to_judge: list[ToJudge]
    to_accept: list[ToAccept]
    asked: list[AskedFor]


class SaidOfMine(BaseModel):
    """word: approved, rejected, changes_wanted or withdrawn. seen_at: when you saw it, null until then."""

    session: UUID
    decision: int
    title: str
    who: str
    word: str
    reason: str
    at: datetime
    seen_at: datetime | None


class Named(Said):
    """seen_at: when you saw it, null until then."""

    seen_at: datetime | None


class News(BaseModel):
    id: str
    title: str
    chosen: bool


class Notices(BaseModel):
    """by_mail: whether anything is sent: this Peerpath sends mail, and you gave an address."""

    kinds: list[News]
    by_mail: bool


class Choosing(Sent):
    """kinds: all that you want to be told of; the refusal of another one names all there are."""

    kinds: list[str] = Field(max_length=20)


@router.get("/for-me", auth=READ, response=ForMe)
def what_waits_for_me(request: HttpRequest) -> ForMe:
    """Proposals that want your word, what came by links, and measurements that you are asked for."""
    user = acting(request)
    waiting = to_judge(user).select_related("proposed_by").defer("options", "pins", "context")
    asked = [AskedFor(test=one.test, comment=shown(one.comment)) for one in asked_of(user)]
    return ForMe(
        to_judge=[_to_judge(vars(one), one.proposed_by.username) for one in waiting[:MOST]],
        to_accept=[_to_accept(link) for link in to_accept(user)[:MOST]],
        asked=asked,
    )


def _to_judge(row: dict[str, Any], proposed_by: str) -> ToJudge:
    """row: the columns and what `to_judge` adds to them."""
    return ToJudge(
        session=row["session_id"],
        decision=row["number"],
        title=row["title"],
        proposed_by=proposed_by,
        proposed_at=row["proposed_at"],
        my_word=row["my_word"],
        content_changed=bool(row["my_word"]) and row["my_content"] != row["content_now"],
    )


def _to_accept(link: Link) -> ToAccept:
    return ToAccept(session=link.session_id, link=link.pk, person=link.person, received_at=link.received_at)


@router.post("/for-me/seen", auth=WRITE, response={204: None})
def say_seen(request: HttpRequest) -> Status[None]:
    """You saw all that was said to you. Reading it here does not say so; opening the page does."""
    all_seen(acting(request))
    return Status(204, None)


@router.get("/words", auth=READ, response=Page[SaidOfMine])
def list_words(request: HttpRequest, asked: Query[Asked]) -> Page[SaidOfMine]:
    """What others said of your proposals, the newest first."""
    rows = said_of_mine(acting(request)).select_related("by", "decision")
    found, following = page(rows, asked, by="id")
    return Page[SaidOfMine](items=[_of_mine(one) for one in found], next=following)


def _of_mine(word: Approval) -> SaidOfMine:
    return SaidOfMine(
        session=word.decision.session_id,
        decision=word.decision.number,
        title=word.decision.title,
        who=word.who,
        word=str(word.word),
        reason=word.reason,
        at=word.at,
        seen_at=word.seen_at,
    )


@router.get("/mentions", auth=READ, response=Page[Named])
def list_mentions(request: HttpRequest, asked: Query[Asked]) -> Page[Named]:
    """Comments in which somebody named you, the newest first."""
    found, following = page(named(acting(request)), asked, by="id")
    items = [Named(**shown(one.comment).model_dump(), seen_at=one.seen_at) for one in found]
    return Page[Named](items=items, next=following)


@router.get("/notices", auth=READ, response=Notices)
def read_notices(request: HttpRequest) -> Notices:
    """What you are told of by mail, about sessions that you are a member of."""
    user = acting(request)
    chosen = chosen_by(user)
    kinds = [News(id=one.id, title=one.title, chosen=one.id in chosen) for one in KINDS.values()]
    return Notices(kinds=kinds, by_mail=settings.MAIL_ON and bool(user.email))


@router.put("/notices", auth=WRITE, response=Notices)
def choose_notices(request: HttpRequest, sent: Choosing) -> Notices:
    """Says anew what you want to be told of by mail."""
    if unknown := sorted(set(sent.kinds) - KINDS.keys()):
        raise RefusedError(422, f"There is no {', '.join(unknown)}; there are {', '.join(KINDS)}.")
    choose(acting(request), sent.kinds)
    return read_notices(request)
