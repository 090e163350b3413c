"""The versions of a decision record: what was proposed each time, what was said of it, what changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from webapp.api.asking import session_of
from webapp.api.auth import READ
from webapp.api.paging import Asked, Page, page
from webapp.review import workflow
from webapp.review.models import Approval
from webapp.review.versions import Judged, differences, versions_of

router = Router(tags=["decisions"])
V = "/sessions/{uuid:session_id}/decisions/{int:number}/versions"


class SaidOfVersion(BaseModel):
    """word: approved, rejected, changes_wanted or withdrawn, which takes back what they said before. by_link:
    it came by the host admin's link, and no account stands behind it."""

    who: str
    word: str
    reason: str
    at: datetime
    by_link: bool


class Version(BaseModel):
    """A record as it was proposed or renewed. words: on this text, the oldest first."""

    number: int
    proposed_by: str
    at: datetime
    content_sha256: str
    words: list[SaidOfVersion]


class Changed(BaseModel):
    title: str
    before: str
    after: str


class WholeVersion(Version):
    """content: the record's fields as they stood. since: the version it is compared with, its own number when
    there is none before it. changed: the parts whose texts differ."""

    content: dict[str, Any]
    since: int
    changed: list[Changed]


class Since(BaseModel):
    """since: the number of the version to compare with; without it, the one before."""

    since: int | None = Field(None, ge=1, le=2**31 - 1)


def _plain(judged: Judged) -> dict[str, Any]:
    version = judged.version
    return {
        "number": version.number,
        "proposed_by": version.proposed_by.username,
        "at": version.at,
        "content_sha256": version.content_sha256,
        "words": [_said(one) for one in judged.words],
    }


def _said(one: Approval) -> SaidOfVersion:
    return SaidOfVersion(who=one.who, word=str(one.word), reason=one.reason, at=one.at, by_link=one.by_id is None)


@router.get(V, auth=READ, response=Page[Version])
def list_versions(request: HttpRequest, session_id: UUID, number: int, asked: Query[Asked]) -> Page[Version]:
    """The record as it was proposed each time, the oldest first; none before that."""
    found = get_object_or_404(session_of(request, session_id).decisions, number=number)
    rows = found.versions.only("number")
    kept, following = page(rows, asked, by="number", newest_first=False)
    judged = {one.version.pk: one for one in versions_of(found, workflow.approvals_of(found))}
    items = [Version(**_plain(judged[one.pk])) for one in kept]
    return Page[Version](items=items, next=following)


@router.get(V + "/{int:version}", auth=READ, response=WholeVersion)
def read_version(
    request: HttpRequest, session_id: UUID, number: int, version: int, asked: Query[Since]
) -> WholeVersion:
    """One version with its text, what was said of it, and what changed."""
    found = get_object_or_404(session_of(request, session_id).decisions, number=number)
    judged = versions_of(found, workflow.approvals_of(found), whole=True)
    by_number = {one.version.number: one for one in judged}
    since = asked.since or max(1, version - 1)
    if version not in by_number or since not in by_number:
        raise Http404
    after, before = by_number[version], by_number[since].version
    changed = [
        Changed(title=one.title, before=one.before, after=one.after) for one in differences(before, after.version)
    ]
    return WholeVersion(**_plain(after), content=after.version.content, since=since, changed=changed)
