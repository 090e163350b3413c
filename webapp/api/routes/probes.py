"""What a machine is asked: every probe with the commands that the collector runs."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel

from agents.facts import View
from webapp.api.auth import READ
from webapp.help.catalogue import ListedProbe, probes

router = Router(tags=["runs"])


class ProbeCommand(BaseModel):
    """One of the alternatives, tried in order. needs: tools without which it is passed over. root: by
    `sudo -n` where that is allowed."""

    command: str
    needs: list[str]
    timeout_s: int
    root: bool


class Question(BaseModel):
    """id: names it in a run, and as the reader of lines. facts: ids of what it tells."""

    id: str
    role: str
    title: str
    facts: list[str]
    commands: list[ProbeCommand]


@router.get("/probes", auth=READ, response=list[Question])
def list_probes(request: HttpRequest) -> list[Question]:
    """Every question, the guest's first. They only read."""
    return [_shown(one) for view in (View.GUEST, View.HOST) for one in probes(view)]


def _shown(one: ListedProbe) -> Question:
    return Question(
        id=one.probe.id,
        role=str(one.probe.role),
        title=one.probe.title,
        facts=[fact.id for fact in one.probe.supplies],
        commands=[
            ProbeCommand(command=c.command, needs=list(c.needs), timeout_s=c.timeout_s, root=c.root)
            for c in one.commands
        ],
    )
