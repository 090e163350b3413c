"""What the evidence carries: the diagnosis, and what else the reasoning says."""

import json
from typing import Any
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import BaseModel, Field

from webapp.api.auth import READ
from webapp.api.etags import revalidated, tag_of
from webapp.api.request_context import session_of
from webapp.presenting.diagnosis_json import as_dict, as_json, rounded
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.review.before_after import before_after
from webapp.review.closing_evidence import proof_of

router = Router(tags=["reasoning"])
S = "/sessions/{uuid:session_id}"
Json = dict[str, Any]


class DiagnosisObject(BaseModel):
    """peerpath.diagnosis/1, byte for byte as `diagnose --json` prints it."""

    schema_: str = Field(alias="schema")
    headline: str
    summary: str
    facts: Json
    contradictions: list[Json]
    ladder: list[Json]
    hypotheses: list[Json]
    bounds: list[Json]
    findings: list[Json]
    next_tests: list[Json]
    layouts: list[Json]
    options: list[Json]
    corrections: list[Json]
    unrecognised: list[Json]


class Prefix(BaseModel):
    """prefix: "gpu." for some of them."""

    prefix: str = Field("", max_length=80)


class States(BaseModel):
    """Tokens of the two states: "e1", or the name of one output; "" for what the session proposes."""

    before: str = Field("", max_length=200)
    after: str = Field("", max_length=200)


class Verification(BaseModel):
    """found: each kind of measurement that both states have, with whether and how they compare. codes: the
    driver's answers on P2P. scores: the predictions of `decision` beside what was measured. along: numbers
    of the decisions carried out between the states. proof: what `decision` could be closed with: what was
    compared, what is missing to call it verified, and what does harm."""

    epoch: int
    before: str
    after: str
    found: list[Json]
    codes: Json | None
    decision: int | None
    along: list[int]
    scores: list[Json]
    proof: Json | None


def plain(value: object) -> Any:
    """As JSON has it, figures rounded as the diagnosis's are."""
    return rounded(json.loads(msgspec.json.encode(value)))


@router.get(S + "/diagnosis", auth=READ, response=DiagnosisObject, by_alias=True)
@revalidated
def read_diagnosis(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The diagnosis as it stands; with If-None-Match, 304 while it is the one you have."""
    session = session_of(request, session_id)
    body = f"{as_json(session_diagnosis(session), _unplaced(session))}\n".encode()
    return HttpResponse(body, content_type="application/json", headers={"ETag": tag_of(body)})


def _unplaced(session: DiagnosisSession) -> list[Json]:
    outputs = session.evidence.exclude(unplaced=[]).only("reader", "sha256", "unplaced", "session")
    return [{"source": e.name, "lines": lines} for e in outputs for lines in e.unplaced]


@router.get(S + "/facts", auth=READ, response=Json)
def read_facts(request: HttpRequest, session_id: UUID, query: Query[Prefix]) -> Json:
    """The facts of the diagnosis by id, each with its sources."""
    facts: Json = as_dict(session_diagnosis(session_of(request, session_id)))["facts"]
    return {name: fact for name, fact in facts.items() if name.startswith(query.prefix)}


@router.get(S + "/verification", auth=READ, response=Verification)
def read_verification(request: HttpRequest, session_id: UUID, query: Query[States]) -> Verification:
    """Before beside after, with “cannot tell” as an answer."""
    session = session_of(request, session_id)
    result = before_after(session, (query.before, query.after))
    return Verification(
        epoch=session.epoch,
        before=result.before,
        after=result.after,
        found=[
            {
                "fact": one.kind.fact.id,
                "title": one.kind.title,
                "comparability": plain(one.gate),
                "comparison": plain(one.compared),
            }
            for one in result.comparisons
        ],
        codes=plain(result.codes),
        decision=result.decision.number if result.decision else None,
        along=[one.number for one in result.along],
        scores=plain(result.scores),
        proof=proof_of(result, result.decision).as_data() if result.decision else None,
    )
