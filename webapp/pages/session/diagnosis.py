"""Step 6: the diagnosis from the evidence. Also the session's front door, and the topology."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from agents.facts.host import PLATFORM
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pMatrix
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.case import Bound, Finding, Gate, Path, Verdict, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.situation.topology import GuestGpu, HostGpu, Topology, draw
from webapp.diagnosis.situation.vm import with_vm
from webapp.pages.progress import progress_of
from webapp.pages.session_page import rail_of, render_page, session_page
from webapp.pages.shell import on_session
from webapp.presenting.figures import Segment, ladder_rows, time_bar
from webapp.presenting.pair_map import PairMap, pair_map
from webapp.presenting.topology_figure import Figure, figure, link_in_words
from webapp.presenting.topology_outline import Tree, outline
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import Moment, moments, session_diagnosis, session_pivots
from webapp.records.evidence_rows import to_say
from webapp.records.models import DiagnosisSession, Evidence


@require_safe
@on_session
def session_home(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Leads to the first step that is not done."""
    rail = rail_of(session, progress_of([session])[session.pk])
    return redirect(next((entry.url for entry in rail if not entry.done), rail[5].url))


@dataclass(frozen=True, slots=True)
class DiagnosisPage:
    """paragraph: for a manager. bars: each bound with its bar. to_say: outputs whose lines a person can assign."""

    result: Diagnosis
    paragraph: str
    bars: list[tuple[Bound, tuple[Segment, ...]]]
    ladder: list[tuple[Path, list[Gate]]]
    pressing: list[Finding]
    by_the_way: list[Finding]
    moments: tuple[Moment, ...]
    to_say: list[Evidence]


Judged = tuple[Hypothesis, Verdict]


@dataclass(frozen=True, slots=True)
class HypothesisGroups:
    """Hypotheses with evidence, hypotheses without evidence, and refuted hypotheses."""

    telling: list[Judged]
    silent: list[Judged]
    refuted: list[Judged]


@dataclass(frozen=True, slots=True)
class TopologyPage:
    """pairs: each GPU of the host with its link in words and its GPU in the guest. unmatched: GPUs of the guest
    without a GPU of the host. matrices: the driver's answers, with titles."""

    topology: Topology
    figure: Figure | None
    trees: tuple[Tree, ...]
    map: PairMap | None
    pairs: list[tuple[HostGpu, str, GuestGpu | None]]
    unmatched: list[GuestGpu]
    matrices: list[tuple[str, P2pMatrix]]


@require_safe
@on_session
def diagnosis(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    result = session_diagnosis(session)
    unsaid = to_say(session)
    own = DiagnosisPage(
        result=result,
        paragraph=for_a_manager(result),
        bars=[(bound, time_bar(bound)) for bound in result.bounds],
        ladder=ladder_rows(result.ladder),
        pressing=[finding for finding in result.findings if finding.severity != "info"],
        by_the_way=[finding for finding in result.findings if finding.severity == "info"],
        moments=moments(session_pivots(session, result.facts)),
        to_say=unsaid,
    )
    page = session_page(session, "diagnosis", result=result)
    return render_page(request, "session/diagnosis.html", page, own, _hypothesis_groups(result))


def _hypothesis_groups(result: Diagnosis) -> HypothesisGroups:
    groups = HypothesisGroups([], [], [])
    for hypothesis in all_hypotheses():
        verdict = result.verdicts[hypothesis.id]
        if verdict.kind is VerdictKind.REFUTED:
            group = groups.refuted
        elif verdict.kind is VerdictKind.SUPPORTED or verdict.for_ or verdict.against:
            group = groups.telling
        else:
            group = groups.silent
        group.append((hypothesis, verdict))
    groups.telling.sort(key=lambda row: (row[1].kind is not VerdictKind.SUPPORTED, -_rank_share(row[1])))
    return groups


def _rank_share(verdict: Verdict) -> float:
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
    own = TopologyPage(
        topology=topology,
        figure=figure(topology, processor),
        trees=outline(topology, processor),
        map=pair_map(facts),
        pairs=[
            (gpu, link_in_words(gpu.link), topology.guest[twins[i]] if i in twins else None)
            for i, gpu in enumerate(topology.host)
        ],
        unmatched=[gpu for i, gpu in enumerate(topology.guest) if i not in matched],
        matrices=_p2p_matrices(facts),
    )
    return render_page(request, "session/topology.html", session_page(session, facts=stored), own)


def _p2p_matrices(facts: Facts) -> list[tuple[str, P2pMatrix]]:
    """The driver's answers; one matrix if reads and writes are equal."""
    read, write = facts.value(P2P_READ), facts.value(P2P_WRITE)
    if read and read == write:
        return [(f"{P2P_READ.title}; writes are the same", read)]
    answers = ((P2P_READ.title, read), (P2P_WRITE.title, write))
    return [(title, matrix) for title, matrix in answers if matrix]
