"""Scripts for machines that nobody here reaches, and the plan they belong to."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router
from pydantic import BaseModel

from agents.facts import View
from agents.probes import handed_for
from webapp.api.auth import READ
from webapp.api.declared import filled
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError
from webapp.api.request_context import session_of, user_of
from webapp.api.routes.reasoning import plain
from webapp.diagnosis.scripts import clique_instructions, host_instructions
from webapp.handoff.models import Download, HandedScript
from webapp.handoff.plan import phases
from webapp.handoff.scripts import collector_for, download_record, handed
from webapp.handoff.submissions import still_missing
from webapp.records.diagnoses import session_diagnosis
from webapp.runs.manual_run import program

router = Router(tags=["scripts"])
S = "/sessions/{uuid:session_id}"
A_SCRIPT: dict[str, Any] = {"responses": {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}}


class Handed(BaseModel):
    """A script as it was handed out. sha256: as `sha256sum` prints it."""

    name: str
    role: str
    sha256: str
    phase: str
    act: str
    made_at: datetime


class Taken(BaseModel):
    """who: "" for the person of a link."""

    name: str
    sha256: str
    who: str
    at: datetime


class ByHand(BaseModel):
    """What to write, and how to take it back. untried: what nobody here has run."""

    id: str
    title: str
    steps: list[str]
    text: str
    rollback: str
    source: str
    untried: str


class Phase(BaseModel):
    """One phase's part on one machine. acts: the scripts that can be made now. problem: why there is none
    to apply. gives_up: the isolation that is gone once it is applied."""

    id: str
    title: str
    role: str
    acts: list[str]
    problem: str
    gives_up: list[str]


class Where(BaseModel):
    """role: whose part of the phase; the host's where it has one, else the guest's."""

    role: Literal["guest", "host"] | None = None


A_PROGRAM: dict[str, Any] = {"responses": {200: {"content": {"application/zip": {"schema": {"type": "string"}}}}}}


class Missing(BaseModel):
    """missing: only what the session has no answer to."""

    missing: bool = False


def _script(request: HttpRequest, script: HandedScript) -> HttpResponse:
    """Its text; that the token's owner took it is kept."""
    download_record(script, by=user_of(request))
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return HttpResponse(script.text, content_type="text/plain; charset=utf-8", headers=headers)


@router.get(S + "/scripts", auth=READ, response=Page[Handed])
def list_scripts(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Handed]:
    """Every script that was handed out, the newest first."""
    rows = session_of(request, session_id).scripts.defer("text")
    records, following = page(rows, query, by="id")
    return Page[Handed](items=[filled(Handed, one) for one in records], next=following)


@router.get(S + "/downloads", auth=READ, response=Page[Taken])
def list_downloads(request: HttpRequest, session_id: UUID, query: Query[Asked]) -> Page[Taken]:
    """Each time that somebody took a script, the newest first."""
    rows = Download.objects.filter(script__session=session_of(request, session_id))
    records, following = page(rows.select_related("by", "script").defer("script__text"), query, by="id")
    return Page[Taken](items=[_download(one) for one in records], next=following)


def _download(one: Download) -> Taken:
    who = one.by.username if one.by else ""
    return Taken(name=one.script.name, sha256=one.script.sha256, who=who, at=one.at)


@router.get(S + "/scripts/collect/{role}", auth=READ, response={200: None}, openapi_extra=A_SCRIPT)
def collector(
    request: HttpRequest, session_id: UUID, role: Path[Literal["guest", "host"]], query: Query[Missing]
) -> HttpResponse:
    """The read-only script of one role; what it prints is evidence to paste."""
    session, view = session_of(request, session_id), View(role)
    probes = handed_for(view)
    if query.missing:
        probes = still_missing(session, view) or probes
    return _script(request, collector_for(session, view, probes))


@router.get(S + "/plan", auth=READ, response=list[Phase])
def read_plan(request: HttpRequest, session_id: UUID) -> list[Phase]:
    """Every phase's parts in the order they are run, with the scripts that the evidence lets be made."""
    session = session_of(request, session_id)
    return [
        Phase(
            id=one.id,
            title=one.title,
            role=one.role.value,
            acts=[script.do.value for script in one.scripts],
            problem=one.problem,
            gives_up=list(one.gives_up),
        )
        for one in phases(session_diagnosis(session), session.vmid)
    ]


@router.get(S + "/plan/by-hand", auth=READ, response=list[ByHand])
def read_by_hand(request: HttpRequest, session_id: UUID) -> list[ByHand]:
    """What to write by hand: kernel options of the host; the clique, where it is advised and the VM is not
    Proxmox's."""
    result = session_diagnosis(session_of(request, session_id))
    instructions = (*clique_instructions(result), *host_instructions(result).values())
    return [ByHand(**plain(one)) for one in instructions]


@router.get(S + "/plan/{phase}/{act}", auth=READ, response={200: None}, openapi_extra=A_SCRIPT)
def phase_script(
    request: HttpRequest,
    session_id: UUID,
    phase: Path[str],
    act: Path[Literal["apply", "verify", "rollback"]],
    where: Query[Where],
) -> HttpResponse:
    """One phase's script as it is made now; the plan says why there is none."""
    session = session_of(request, session_id)
    plan = phases(session_diagnosis(session), session.vmid)
    fitting = [
        script
        for one in sorted(plan, key=lambda part: part.role is not View.HOST)
        for script in one.scripts
        if (one.id, script.do.value) == (phase, act) and where.role in (None, one.role)
    ]
    if not fitting:
        raise RefusedError(404, "There is no such script now; the plan says why.")
    return _script(request, handed(session, None, fitting[0]))


@router.get(S + "/scripts/{str:sha256}", auth=READ, response={200: None}, openapi_extra=A_SCRIPT)
def kept_script(request: HttpRequest, session_id: UUID, sha256: str) -> HttpResponse:
    """A script as it was handed out, whatever would be made today."""
    session = session_of(request, session_id)
    script = get_object_or_404(HandedScript, session=session, sha256=sha256, link=None)
    return _script(request, script)


@router.get(S + "/benchmarks/{str:benchmark}/program", auth=READ, response={200: None}, openapi_extra=A_PROGRAM)
def benchmark_program(request: HttpRequest, session_id: UUID, benchmark: str) -> HttpResponse:
    """The program that a run would send, for a machine that nothing here reaches; what it prints is
    evidence to paste."""
    session_of(request, session_id)
    try:
        return HttpResponse(program(benchmark), content_type="application/zip")
    except KeyError:
        raise Http404 from None
