"""The diagnosis of a session as it stands, and how it came about."""

from __future__ import annotations

from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.pivot import Pivot, Stage, pivots
from webapp.triage.case_facts import facts_of
from webapp.triage.models import DiagnosisSession, Evidence

# A page shows at most this many moments; older ones are folded into the first.
MOMENTS = 10


def session_diagnosis(session: DiagnosisSession) -> Diagnosis:
    return diagnose(facts_of(session), vmid=session.vmid)


def session_pivots(session: DiagnosisSession, facts: Facts) -> tuple[Pivot, ...]:
    """Which evidence changed which verdict, oldest first.

    Evidence that came together (one run, one paste) is one moment.
    """
    moments: dict[object, list[Evidence]] = {}
    for evidence in session.evidence.defer("body", "stderr").select_related("run"):
        moments.setdefault(_moment(evidence), []).append(evidence)
    names: set[str] = set()
    stages = [Stage("What the operator said", session.created_at, facts.only(names, user=True))]
    for group in moments.values():
        names |= {evidence.name for evidence in group}
        stages.append(Stage(_title(group), group[0].created_at, facts.only(names, user=True)))
    return pivots(stages[:1] + stages[1:][-MOMENTS:], vmid=session.vmid)


def _moment(evidence: Evidence) -> object:
    """What came together: a run, a stage of the sample, else each paste by itself."""
    if evidence.origin == "sample":
        return evidence.label.partition("/")[0]
    return evidence.run_id or evidence.pk


def _title(group: list[Evidence]) -> str:
    first = group[0]
    if first.run is not None:
        return f"Run {first.run.number}: {first.run.kind} on {first.view}"
    if first.origin == "sample":
        return f"The account, stage “{_moment(first)}”"
    return first.label or f"A {first.origin}"
