"""What people say of a session and of things in it."""

from datetime import datetime
from typing import Literal
from uuid import UUID

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
from webapp.review.models import Comment
from webapp.review.threads import LONGEST, CommentError, comment_add

router = Router(tags=["comments"])
C = "/sessions/{uuid:session_id}/comments"


class Said(BaseModel):
    """anchor: what it is about, "" for the session. reply_to: the id of its thread's first comment."""

    id: int
    session: UUID
    anchor: str
    stance: str
    reply_to: int | None
    text: str
    author: str
    created_at: datetime


class Saying(Sent):
    """anchor: "finding:<id>", "hypothesis:<id>", "option:<id>", "run:<number>", "decision:<number>",
    "gate:<path>-<gate>", "test:<id>" (a measurement that you ask somebody for) or "line:<evidence>:<number>";
    of an answer, its thread's own."""

    text: str = Field(min_length=1, max_length=LONGEST)
    stance: Literal["agree", "dispute", "resolve", "reopen", ""] = ""
    anchor: str = Field("", max_length=120)
    reply_to: int | None = Field(None, ge=1, le=2**53)


def comment_body(comment: Comment) -> Said:
    return filled(
        Said, comment, session=comment.session_id, reply_to=comment.reply_to_id, author=comment.author.username
    )


@router.get(C, auth=READ, response=Page[Said])
def list_comments(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Said]:
    """What was said of the session, the oldest first."""
    rows = session_of(request, session_id).comments.select_related("author")
    records, following = page(rows, query, by="id", newest_first=False)
    return Page[Said](items=[comment_body(one) for one in records], next=following)


@router.post(C, auth=WRITE, response={201: Said})
@remembered()
def comment(request: HttpRequest, session_id: UUID, sent: Saying) -> Status[Said]:
    """Says something; whoever is named with @ is told."""
    session = session_of(request, session_id, Role.REVIEWER)
    first = get_object_or_404(session.comments, pk=sent.reply_to, reply_to=None) if sent.reply_to else None
    try:
        made = comment_add(
            session, author=user_of(request), text=sent.text, stance=sent.stance, anchor=sent.anchor, reply_to=first
        )
    except CommentError as error:
        raise RefusedError(422, str(error)) from error
    return Status(201, comment_body(made))
