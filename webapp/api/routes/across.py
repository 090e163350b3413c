"""What looks at many things at once: a search, the machines of a group side by side."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from webapp.accounts.models import Role
from webapp.api.asking import Sent, session_of
from webapp.api.auth import READ, RUN
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError
from webapp.api.remembering import remembered
from webapp.api.routes.machines import said_of
from webapp.api.routes.runs import Sending, shown
from webapp.triage import machines
from webapp.triage.credentials import may_connect
from webapp.triage.forms.group import GroupForm
from webapp.triage.models import Entry
from webapp.triage.search import matching
from webapp.triage.views.search import address
from webapp.triage.views.shell import acting

router = Router(tags=["many things at once"])
M = "/sessions/{uuid:session_id}/machines"
Kind = Literal["session", "finding", "decision", "run", "evidence", "comment"]


class Words(Asked):
    """Each word has to begin one of the text's. kind: only these."""

    q: str = Field("", max_length=200)
    kind: Kind | None = None


class Found(BaseModel):
    """ref: its id within the session; page: where people read it."""

    kind: str
    session: UUID
    session_title: str
    ref: str
    title: str
    page: str


class Cell(BaseModel):
    """standing: alike, odd, differs or unknown; source: the evidence it was read from."""

    text: str
    standing: str
    source: str


class Trait(BaseModel):
    """usual: what most say, or the median. cells: in the order of the machines."""

    title: str
    usual: str
    cells: list[Cell]


class SideBySide(BaseModel):
    """odd: the machines that differ from the others, the oddest first, and in what."""

    machines: list[str]
    traits: list[Trait]
    odd: dict[str, list[str]]


class Group(Sent):
    """machines: host, user@host or user@host:port; user and port are for those that have none. known_hosts:
    lines of such a file that you vouch for. stored_key, identity_file: as for one machine."""

    machines: list[str] = Field(min_length=1, max_length=machines.MOST)
    user: str = Field("root", max_length=64)
    port: int = Field(22, ge=1, le=65535)
    stored_key: str = Field("", max_length=36)
    identity_file: str = Field("", max_length=400)
    jump: str = Field("", max_length=300)
    known_hosts: str = Field("", max_length=1_000_000)


class Added(BaseModel):
    """added: machines that were not there. pinned: how many of those named have an accepted host key."""

    added: int
    pinned: int


@router.get("/search", auth=READ, response=Page[Found])
def search(request: HttpRequest, asked: Query[Words]) -> Page[Found]:
    """Sessions, findings, decisions, runs, evidence and comments with these words, the newest first."""
    entries = Entry.objects.visible_to(acting(request)).select_related("session").defer("words")
    if asked.kind:
        entries = entries.filter(kind=asked.kind)
    found, following = page(matching(entries, asked.q), asked, by="id")
    return Page[Found](items=[_found(entry) for entry in found], next=following)


def _found(entry: Entry) -> Found:
    return Found(
        kind=entry.kind,
        session=entry.session_id,
        session_title=entry.session.title,
        ref=entry.ref,
        title=entry.title,
        page=address(entry),
    )


@router.get(M, auth=READ, response=SideBySide)
def compare_machines(request: HttpRequest, session_id: UUID) -> SideBySide:
    """The guests of a group side by side, and which is the odd one out."""
    session = session_of(request, session_id)
    found = machines.side_by_side(session, machines.guests(session))
    traits = [
        Trait(
            title=row.title,
            usual=row.usual,
            cells=[Cell(text=cell.text, standing=str(cell.standing), source=cell.source) for cell in row.cells],
        )
        for row in found.rows
    ]
    odd = {name: list(titles) for name, titles in found.odd}
    return SideBySide(machines=list(found.machines), traits=traits, odd=odd)


@router.post(M, auth=RUN, response={201: Added})
@remembered()
def add_machines(request: HttpRequest, session_id: UUID, sent: Group) -> Status[Added]:
    """Adds machines that are compared with each other."""
    session, user = session_of(request, session_id, Role.OPERATOR), acting(request)
    if not may_connect(user):
        raise PermissionDenied("Store a key of yours first: on the page “Keys”, or POST /keys.")
    form = GroupForm(sent.model_dump() | {"machines": "\n".join(sent.machines)}, user=user)
    if not form.is_valid():
        raise RefusedError(422, said_of(form))
    try:
        found = machines.group_add(session, user, form.addresses, sent.known_hosts, form.values())
    except machines.GroupError as error:
        raise RefusedError(422, str(error)) from error
    return Status(201, Added(added=found[0], pinned=found[1]))


@router.post(M + "/runs", auth=RUN, response={201: list[Sending]})
@remembered()
def run_on_machines(request: HttpRequest, session_id: UUID) -> Status[list[Sending]]:
    """Starts the probes on every guest whose host key is accepted and that none are at work on."""
    session = session_of(request, session_id, Role.OPERATOR)
    return Status(201, [shown(run) for run in machines.run_on_all(session, acting(request))])
