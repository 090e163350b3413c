"""What a machine can be asked, by the ids that runs and lines name."""

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel

from agents.facts import View
from agents.probes import probes_for
from webapp.api.auth import READ

router = Router(tags=["runs"])


class Question(BaseModel):
    """id: names it in a run, and as the reader of lines. facts: ids of what it tells."""

    id: str
    role: str
    title: str
    facts: list[str]


@router.get("/probes", auth=READ, response=list[Question])
def list_probes(request: HttpRequest) -> list[Question]:
    """Every question, the guest's first. They only read."""
    return [
        Question(id=one.id, role=str(one.role), title=one.title, facts=[fact.id for fact in one.supplies])
        for view in (View.GUEST, View.HOST)
        for one in probes_for(view)
    ]
