"""Decision records: drafted, proposed, judged by others, carried out, closed."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from webapp.accounts.models import Role
from webapp.api.auth import READ, WRITE
from webapp.api.declared import declared, filled
from webapp.api.etags import IF_MATCH, asked_version, revalidated, tag_of, version_tag
from webapp.api.idempotency import remembered
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import LEAVING, RefusedError
from webapp.api.request_context import Sent, session_of, user_of
from webapp.api.routes.outgoing import Raw
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.redaction import RedactionError, hiding
from webapp.review import models, workflow
from webapp.review.before_after import before_after
from webapp.review.closing_evidence import proof_of
from webapp.review.decision_fields import TEXTS, DecisionContent, DecisionTexts, Wording
from webapp.review.decisions import (
    DecisionError,
    DraftChangedError,
    decision_draft,
    decisions_matching,
    draft_save,
    superseded_pins,
)
from webapp.review.madr import as_markdown
from webapp.review.models import Decision
from webapp.review.scoring import as_data

router = Router(tags=["decisions"])
D = "/sessions/{uuid:session_id}/decisions"
Json = dict[str, Any]
MARKDOWN: Json = {"responses": {200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}, **LEAVING}}


class Judgement(BaseModel):
    """by_link: it came by the host admin's link, and no account stands behind it."""

    who: str
    approves: bool
    reason: str
    at: datetime
    by_link: bool


class Summary(BaseModel):
    """without_comparison: its state is a claim about its effect, and nothing that was compared was kept."""

    session: UUID
    number: int
    title: str
    state: str
    chosen: list[str]
    reason: str
    outcome: str
    proposed_by: str
    version: int
    created_at: datetime
    without_comparison: bool


@declared(DecisionContent)
class Record(Summary):
    """needed: how many other people have to approve it. counting: their words on it as it stands.
    content_sha256: of what they approve. stale: facts it rests on whose evidence no longer counts.
    supersedes, superseded_by: numbers. proof: what was compared when it was closed, what was missing to call
    it verified, and what does harm; {} while it is open and in old records."""

    needed: int
    counting: list[Judgement]
    content_sha256: str
    stale: list[str]
    supersedes: int | None
    superseded_by: int | None
    proof: Json


@declared(DecisionTexts, bounded=True)
class Draft(Sent):
    """chosen: option ids. unsafe_understood: you read why an unsafe one is unsafe. supersedes: the number
    of the record this takes the place of, for a new draft."""

    chosen: list[str] = Field(max_length=100)
    unsafe_understood: bool = False

    def wording(self) -> Wording:
        texts = {name: getattr(self, name).strip() for name in TEXTS}
        return Wording(chosen=tuple(self.chosen), unsafe_understood=self.unsafe_understood, **texts)


class NewDraft(Draft):
    supersedes: int | None = Field(None, ge=1, le=2**31)


State = Literal[
    "draft", "proposed", "approved", "rejected", "applied", "verified", "no_effect", "not_verified",
    "reverted", "superseded",
]  # fmt: skip


class WhichRecords(Asked):
    """q: a part of the record or of its session's title. state: only these."""

    q: str = Field("", max_length=100)
    state: State | None = None


class Word(Sent):
    """seen: the content_sha256 of the record as you read it; another one is refused. changes_wanted: in
    place of a rejection; it stays proposed. withdrawn: in place of any of them, you take back what you said.
    despite_disputes: you know what is disputed on it."""

    approves: bool
    changes_wanted: bool = False
    withdrawn: bool = False
    despite_disputes: bool = False
    reason: str = Field("", max_length=20_000)
    seen: str = Field("", max_length=64)


class Closing(Sent):
    """before, after: the states that are compared, and by which its predictions are scored, as for the
    verification. “verified” and “no_effect” need a comparison of what the options name; 409 says what is
    missing. not_verified: it ends, and its effect was not shown."""

    state: Literal["verified", "no_effect", "not_verified", "reverted"]
    outcome: str = Field(min_length=1, max_length=20_000)
    before: str = Field("", max_length=200)
    after: str = Field("", max_length=200)


def _names(decision: Decision) -> Json:
    """What an answer calls otherwise than its row."""
    proposer = decision.proposed_by.username
    return {"session": decision.session_id, "state": str(decision.state), "proposed_by": proposer}


def _summary(decision: Decision) -> Summary:
    return filled(Summary, decision, **_names(decision))


def _record(decision: Decision) -> Record:
    replaced_by = decision.superseded_by.first()
    return filled(
        Record,
        decision,
        **_names(decision),
        needed=workflow.needed(decision),
        counting=[
            filled(Judgement, approval, by_link=approval.by_id is None) for approval in workflow.counting(decision)
        ],
        stale=superseded_pins(decision, facts_of(decision.session)),
        supersedes=decision.supersedes.number if decision.supersedes else None,
        superseded_by=replaced_by.number if replaced_by else None,
    )


def _find(session: DiagnosisSession, number: int) -> Decision:
    return get_object_or_404(session.decisions.select_related("proposed_by"), number=number)


def _answered(decision: Decision, status: int = 200) -> HttpResponse:
    """As it is now, with its ETag."""
    current = _find(decision.session, decision.number)
    where = f"/api/v1/sessions/{current.session_id}/decisions/{current.number}"
    body = _record(current).model_dump_json().encode()
    headers = {"ETag": tag_of(body, current.version), "Location": where}
    return HttpResponse(body, status=status, content_type="application/json", headers=headers)


def _moved(decision: Decision, act: Callable[[], None]) -> HttpResponse:
    try:
        act()
    except DecisionError as error:
        raise RefusedError(409, str(error)) from error
    return _answered(decision)


@router.get(D, auth=READ, response=Page[Summary])
def list_decisions(request: HttpRequest, session_id: UUID, query: Query[WhichRecords]) -> Page[Summary]:
    """The session's records, the newest first."""
    rows = session_of(request, session_id).decisions.select_related("proposed_by")
    rows = decisions_matching(rows, q=query.q.strip(), state=query.state or "")
    records, following = page(rows.defer("options", "pins", "context"), query, by="number")
    return Page[Summary](items=[_summary(one) for one in records], next=following)


@router.post(D, auth=WRITE, response={201: Record})
@remembered()
def draft_decision(request: HttpRequest, session_id: UUID, sent: NewDraft) -> HttpResponse:
    """Drafts a record with every option as it stands now."""
    session = session_of(request, session_id, Role.OPERATOR)
    instead = _find(session, sent.supersedes) if sent.supersedes else None
    try:
        made = decision_draft(
            session,
            user=user_of(request),
            wording=sent.wording(),
            result=session_diagnosis(session),
            supersedes=instead,
        )
    except DecisionError as error:
        raise RefusedError(422, str(error)) from error
    return _answered(made, 201)


@router.get(D + "/{int:number}", auth=READ, response=Record)
@revalidated
def read_decision(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """One record; its ETag is what a change of the draft names in If-Match."""
    return _answered(_find(session_of(request, session_id), number))


@router.patch(D + "/{int:number}", auth=WRITE, response=Record, openapi_extra=IF_MATCH)
def change_draft(request: HttpRequest, session_id: UUID, number: int, sent: Draft) -> HttpResponse:
    """Writes a draft anew, with If-Match."""
    session = session_of(request, session_id, Role.OPERATOR)
    draft = _find(session, number)
    version = asked_version(request, draft.version)
    try:
        draft_save(
            draft, user=user_of(request), version=version, wording=sent.wording(), result=session_diagnosis(session)
        )
    except DecisionError as error:
        raise RefusedError(422, str(error)) from error
    except DraftChangedError as error:
        tag = {"ETag": version_tag(error.current.version)}
        raise RefusedError(412, "Somebody saved or proposed it meanwhile. Read it again.", tag) from error
    return _answered(draft)


@router.post(D + "/{int:number}/propose", auth=WRITE, response=Record)
def propose_decision(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """Asks the others; what nobody else carries out is approved with it."""
    decision = _find(session_of(request, session_id, Role.OPERATOR), number)
    return _moved(decision, lambda: workflow.decision_propose(decision, user=user_of(request)))


@router.post(D + "/{int:number}/withdraw", auth=WRITE, response=Record)
def withdraw_decision(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """Takes it back to a draft, to be changed."""
    decision = _find(session_of(request, session_id, Role.OPERATOR), number)
    return _moved(decision, lambda: workflow.decision_withdraw(decision, user=user_of(request)))


@router.post(D + "/{int:number}/renew", auth=WRITE, response=Record)
def renew_decision(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """Pins today's evidence and asks again."""
    session = session_of(request, session_id, Role.OPERATOR)
    decision, result = _find(session, number), session_diagnosis(session)
    return _moved(decision, lambda: workflow.decision_renew(decision, user=user_of(request), result=result))


@router.post(D + "/{int:number}/apply", auth=WRITE, response=Record)
def apply_decision(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """Says that it was carried out: evidence from now on is “after”."""
    session = session_of(request, session_id, Role.OPERATOR)
    decision, facts = _find(session, number), facts_of(session)
    return _moved(decision, lambda: workflow.decision_apply(decision, user=user_of(request), facts=facts))


def _word(sent: Word) -> models.Word:
    if sent.withdrawn:
        return models.Word.WITHDRAWN
    if sent.approves:
        return models.Word.APPROVED
    return models.Word.CHANGES_WANTED if sent.changes_wanted else models.Word.REJECTED


@router.post(D + "/{int:number}/judge", auth=WRITE, response=Record)
def judge_decision(request: HttpRequest, session_id: UUID, number: int, sent: Word) -> HttpResponse:
    """Gives a second person's word; their newest counts."""
    session = session_of(request, session_id, Role.REVIEWER)
    decision = _find(session, number)
    return _moved(
        decision,
        lambda: workflow.decision_judge(
            decision,
            word=_word(sent),
            despite=sent.despite_disputes,
            reason=sent.reason.strip(),
            facts=facts_of(session),
            by=user_of(request),
            seen=sent.seen,
        ),
    )


@router.post(D + "/{int:number}/close", auth=WRITE, response=Record)
def close_decision(request: HttpRequest, session_id: UUID, number: int, sent: Closing) -> HttpResponse:
    """Says what came of it, by what the two states show. Its predictions are scored by them, and kept."""
    session = session_of(request, session_id, Role.OPERATOR)
    decision = _find(session, number)
    result = before_after(session, (sent.before, sent.after), decision)
    return _moved(
        decision,
        lambda: workflow.decision_close(
            decision,
            user=user_of(request),
            state=sent.state,
            outcome=sent.outcome,
            proof=proof_of(result, decision),
            scores=as_data(result.scores),
        ),
    )


@router.get(D + "/{int:number}/madr", auth=READ, response={200: None}, openapi_extra=MARKDOWN)
def export_decision(request: HttpRequest, session_id: UUID, number: int, query: Query[Raw]) -> HttpResponse:
    """The record as MADR Markdown, redacted unless raw."""
    decision = _find(session_of(request, session_id), number)
    try:
        text = as_markdown(decision, None if query.raw else hiding(decision.session))
    except RedactionError as error:
        raise RefusedError(503, str(error)) from error
    return HttpResponse(text, content_type="text/markdown; charset=utf-8")
