"""Sessions, who is in them, and their log."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import File, Query, Router, UploadedFile
from pydantic import BaseModel, Field

from agents.samples import load
from webapp.accounts.models import ApiToken, Role
from webapp.api.auth import READ, WRITE
from webapp.api.declared import declared, filled
from webapp.api.etags import IF_MATCH, asked_version, revalidated, tag_of, version_tag
from webapp.api.idempotency import remembered
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError
from webapp.api.request_context import Sent, session_of, user_of
from webapp.records.access import refuse_unless_may_open
from webapp.records.event_log import broken, filtered
from webapp.records.models import DiagnosisSession
from webapp.records.session_fields import SessionFields
from webapp.records.session_search import Criteria, sessions_matching
from webapp.records.sessions import EditedMeanwhileError, session_open, session_save
from webapp.records.workload import NO_USABLE_POINT, observed_points_save, workload_check
from webapp.review.bundle.format import BundleError
from webapp.review.bundle.importing import LARGEST_BYTES, open_bundle
from webapp.runs.samples import open_sample

router = Router(tags=["sessions"])
S = "/sessions/{uuid:session_id}"


class Me(BaseModel):
    """Who this token acts as. scopes: what it may."""

    username: str
    role: str
    may_open_sessions: bool
    scopes: list[str]
    expires_at: datetime


@declared(SessionFields)
class Session(BaseModel):
    """version: what If-Match names. my_role: of who asks. epoch: changes applied so far."""

    id: UUID
    owner: str
    my_role: str
    version: int
    created_at: datetime
    updated_at: datetime
    url: str


class WhichSessions(Asked):
    """q: words. gpu, board: a part of it; driver: the beginning of its version; verdict: the id of a
    supported hypothesis; gate: the first that failed."""

    q: str = Field("", max_length=100)
    gpu: str = Field("", max_length=100)
    board: str = Field("", max_length=100)
    driver: str = Field("", max_length=100)
    verdict: str = Field("", max_length=100)
    gate: str = Field("", max_length=100)


class Acts(Asked):
    """kind: only these acts. actor: only this person's."""

    kind: str = Field("", max_length=60)
    actor: str = Field("", max_length=150)


class Measured(Sent):
    """evidence: the name of an output with points of a load."""

    evidence: str = Field(min_length=1, max_length=100)


class NewSession(Sent):
    title: str = Field("A machine that is slower than expected", min_length=1, max_length=200)
    symptom: str = Field("", max_length=20_000)


class Sample(Sent):
    stage: Literal["first", "guest", "host", "after"] = "after"


class Change(Sent):
    """What is left out or null stays, save that a vmid can be taken back. workload: the whole of it, with
    the tables of the workload file."""

    title: str | None = Field(None, min_length=1, max_length=200)
    symptom: str | None = Field(None, max_length=20_000)
    workload: dict[str, Any] | None = None
    first_hypothesis: str | None = Field(None, max_length=80)
    own_words: str | None = Field(None, max_length=20_000)
    vmid: int | None = Field(None, ge=1, le=999_999_999)


class LogEntry(BaseModel):
    number: int
    kind: str
    who: str
    data: dict[str, Any]
    at: datetime
    hash: str


class Chain(BaseModel):
    """broken: what is wrong with the chain of hashes, "" when it is whole."""

    broken: str


@router.get("/me", auth=READ, response=Me)
def me(request: HttpRequest) -> Me:
    """Who the token acts as, and what it may."""
    token: ApiToken = request.auth  # type: ignore[attr-defined]
    user = token.owner
    return Me(
        username=user.username,
        role="administrator" if user.is_staff else user.role,
        may_open_sessions=user.may_open_sessions,
        scopes=token.scopes,
        expires_at=token.expires_at,
    )


def session_body(session: DiagnosisSession) -> Session:
    return filled(Session, session, owner=session.owner.username, url=session.get_absolute_url())


def _answered(request: HttpRequest, session: DiagnosisSession, status: int = 200) -> HttpResponse:
    """As who asks sees it now, with its ETag."""
    current = session_of(request, session.pk)
    body = session_body(current).model_dump_json().encode()
    where = f"/api/v1/sessions/{current.pk}"
    headers = {"ETag": tag_of(body, current.version), "Location": where}
    return HttpResponse(body, status=status, content_type="application/json", headers=headers)


@router.get("/sessions", auth=READ, response=Page[Session])
def list_sessions(request: HttpRequest, query: Query[WhichSessions]) -> Page[Session]:
    """Sessions you may see, the newest first. Words are looked for in the newest thousand texts that have
    them."""
    user, criteria = user_of(request), Criteria.of(query.model_dump(exclude={"cursor", "limit"}))
    rows, _ = sessions_matching(DiagnosisSession.objects.visible_to(user), user, criteria)
    records, following = page(rows.select_related("owner"), query, by="created_at")
    return Page[Session](items=[session_body(one) for one in records], next=following)


@router.post("/sessions", auth=WRITE, response={201: Session})
@remembered()
def open_session(request: HttpRequest, sent: NewSession) -> HttpResponse:
    """Opens a session of your own."""
    refuse_unless_may_open(user_of(request))
    made = session_open(owner=user_of(request), title=sent.title, symptom=sent.symptom)
    return _answered(request, made, 201)


@router.post("/sessions/sample", auth=WRITE, response={201: Session})
@remembered()
def open_sample_session(request: HttpRequest, sent: Sample) -> HttpResponse:
    """A walk through the founding case as it was known at a stage."""
    refuse_unless_may_open(user_of(request))
    name = f"kpro6@{sent.stage}"
    load(name)
    return _answered(request, open_sample(name, owner=user_of(request)), 201)


@router.post("/sessions/bundle", auth=WRITE, response={201: Session})
@remembered()
def open_bundle_session(request: HttpRequest, bundle: File[UploadedFile]) -> HttpResponse:
    """Opens what “Take away” gave, here or elsewhere, as a session of your own."""
    refuse_unless_may_open(user_of(request))
    if (bundle.size or 0) > LARGEST_BYTES:
        raise RefusedError(413, "A bundle has at most 200 MiB.")
    try:
        opened = open_bundle(bundle.read(), user=user_of(request))
    except BundleError as error:
        raise RefusedError(422, str(error)) from error
    return _answered(request, opened.session, 201)


@router.get(S, auth=READ, response=Session)
@revalidated
def read_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """One session; its ETag is what a change names in If-Match."""
    return _answered(request, session_of(request, session_id))


@router.patch(S, auth=WRITE, response=Session, openapi_extra=IF_MATCH)
def change_session(request: HttpRequest, session_id: UUID, sent: Change) -> HttpResponse:
    """Changes what is sent, with If-Match."""
    session = session_of(request, session_id, Role.OPERATOR)
    version = asked_version(request, session.version)
    sent_values = sent.model_dump(exclude_unset=True)
    values = {name: value for name, value in sent_values.items() if value is not None or name == "vmid"}
    if "workload" in values:
        _usable(values["workload"])
    what = "symptom" if values.keys() & {"title", "symptom", "workload"} else "hypothesis"
    try:
        session_save(session, user=user_of(request), version=version, what=what, values=values)
    except EditedMeanwhileError as error:
        raise _changed(error) from error
    return _answered(request, session)


@router.post(S + "/observed", auth=WRITE, response=Session, openapi_extra=IF_MATCH)
def use_measured(request: HttpRequest, session_id: UUID, sent: Measured) -> HttpResponse:
    """What a load on the engine measured becomes what is observed, with If-Match."""
    session = session_of(request, session_id, Role.OPERATOR)
    version = asked_version(request, session.version)
    try:
        points = observed_points_save(session, sent.evidence, user=user_of(request), version=version)
    except EditedMeanwhileError as error:
        raise _changed(error) from error
    if not points:
        raise RefusedError(422, NO_USABLE_POINT)
    return _answered(request, session)


def _changed(error: EditedMeanwhileError) -> RefusedError:
    tag = {"ETag": version_tag(error.current.version)}
    return RefusedError(412, "Somebody changed it meanwhile. Read it again.", tag)


def _usable(workload: dict[str, Any]) -> None:
    try:
        workload_check(workload)
    except (ValueError, TypeError) as error:
        raise RefusedError(422, f"The workload cannot be used: {error}") from error


@router.get(S + "/events", auth=READ, response=Page[LogEntry])
def list_events(request: HttpRequest, session_id: UUID, query: Query[Acts]) -> Page[LogEntry]:
    """Every act, the oldest first."""
    rows = filtered(session_of(request, session_id), kind=query.kind, actor=query.actor)
    records, following = page(rows, query, by="number", newest_first=False)
    items = [LogEntry(number=e.number, kind=e.kind, who=e.who, data=e.data, at=e.at, hash=e.hash) for e in records]
    return Page[LogEntry](items=items, next=following)


@router.get(S + "/events/chain", auth=READ, response=Chain)
def check_events(request: HttpRequest, session_id: UUID) -> Chain:
    """Whether the log is whole."""
    return Chain(broken=broken(session_of(request, session_id)))
