"""Step 6: what the evidence carries. And the session's front door, and topology."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.facts.host import PLATFORM
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pMatrix
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.case import Verdict, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.situation.topology import draw
from webapp.diagnosis.situation.vm import with_vm
from webapp.pages.session.reasoning import what_if_context
from webapp.pages.shell import on_session, shell
from webapp.presenting.figures import ladder_rows, time_bar
from webapp.presenting.pair_map import pair_map
from webapp.presenting.topology_figure import figure, link_in_words
from webapp.presenting.topology_outline import outline
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import moments, session_diagnosis, session_pivots
from webapp.records.evidence_rows import to_say
from webapp.records.models import DiagnosisSession


@require_safe
@on_session
def session_home(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Leads to the first step that is not done."""
    rail = shell(session, "")["rail"]
    return redirect(next((entry["url"] for entry in rail if not entry["done"]), rail[5]["url"]))


@require_safe
@on_session
def diagnosis(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    result = session_diagnosis(session)
    unsaid = to_say(session)
    context = shell(
        session,
        "diagnosis",
        result=result,
        paragraph=for_a_manager(result),
        bars=[(bound, time_bar(bound)) for bound in result.bounds],
        ladder=ladder_rows(result.ladder),
        **_hypotheses(result),
        pressing=[found for found in result.findings if found.severity != "info"],
        by_the_way=[found for found in result.findings if found.severity == "info"],
        moments=moments(session_pivots(session, result.facts)),
        **what_if_context(result.facts, {}),
        to_say=unsaid,
    )
    return TemplateResponse(request, "session/diagnosis.html", context)


def _hypotheses(result: Diagnosis) -> dict[str, Any]:
    """Those with something to say, those still without evidence, and those ruled out."""
    found: dict[str, list[tuple[Hypothesis, Verdict]]] = {"telling": [], "silent": [], "refuted": []}
    for hypothesis in all_hypotheses():
        verdict = result.verdicts[hypothesis.id]
        if verdict.kind is VerdictKind.REFUTED:
            group = "refuted"
        elif verdict.kind is VerdictKind.SUPPORTED or verdict.for_ or verdict.against:
            group = "telling"
        else:
            group = "silent"
        found[group].append((hypothesis, verdict))
    found["telling"].sort(key=lambda row: (row[1].kind is not VerdictKind.SUPPORTED, -_share(row[1])))
    return found


def _share(verdict: Verdict) -> float:
    return verdict.share_ms[1] if verdict.share_ms else 0.0


@require_safe
@on_session
def topology(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    stored = facts_of(session)
    facts = with_vm(stored, session.vmid)
    topology = draw(facts)
    twins = dict(topology.matches)
    matched = set(twins.values())
    platform = facts.value(PLATFORM)
    processor = (platform.cpu or "") if platform else ""
    context = shell(
        session,
        "",
        topology=topology,
        figure=figure(topology, processor),
        trees=outline(topology, processor),
        map=pair_map(facts),
        pairs=[
            (gpu, link_in_words(gpu.link), topology.guest[twins[i]] if i in twins else None)
            for i, gpu in enumerate(topology.host)
        ],
        unmatched=[gpu for i, gpu in enumerate(topology.guest) if i not in matched],
        matrices=_matrices(facts),
        facts=stored,
    )
    return TemplateResponse(request, "session/topology.html", context)


def _matrices(facts: Facts) -> list[tuple[str, P2pMatrix]]:
    """The driver's answers; once where writes are answered like reads."""
    read, write = facts.value(P2P_READ), facts.value(P2P_WRITE)
    if read and read == write:
        return [(f"{P2P_READ.title}; writes are the same", read)]
    found = ((P2P_READ.title, read), (P2P_WRITE.title, write))
    return [(title, matrix) for title, matrix in found if matrix]
