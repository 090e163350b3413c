"""The diagnosis of a session now, and how it came about."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from webapp.diagnosis.answer.timeline import Pivot, Stage, pivots
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.facts import Facts
from webapp.records.case_facts import facts_of
from webapp.records.evidence_rows import evidence_of
from webapp.records.models import DiagnosisSession, Evidence
from webapp.records.received import BUNDLE

# A page shows at most this many moments; older ones are folded into the first.
MOMENTS = 10


def session_diagnosis(session: DiagnosisSession, facts: Facts | None = None) -> Diagnosis:
    """facts: as `facts_of` gives them, where they were read already."""
    return diagnose(facts_of(session) if facts is None else facts, vmid=session.vmid)


def session_pivots(session: DiagnosisSession, facts: Facts) -> tuple[Pivot, ...]:
    """Which evidence changed which verdict, oldest first.

    Evidence that came together (one run, one paste) is one moment.
    """
    moments: dict[object, list[Evidence]] = {}
    for evidence in (e for e in evidence_of(session) if not e.set_aside_at):
        moments.setdefault(_arrival_key(evidence), []).append(evidence)
    names: set[str] = set()
    stages = [Stage("What the operator said", session.created_at, facts.only(names, user=True))]
    for group in moments.values():
        names |= {evidence.name for evidence in group}
        stages.append(Stage(_step_title(group), group[0].created_at, facts.only(names, user=True)))
    return pivots(stages[:1] + stages[1:][-MOMENTS:], vmid=session.vmid)


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment that changed something, or neighbours that did not. A pivot's headline is "" where it
    is the one said before."""

    pivots: tuple[Pivot, ...]

    @property
    def quiet(self) -> bool:
        return not (self.pivots[0].changes or self.pivots[0].headline)

    @property
    def groups(self) -> list[tuple[str, str, list[str]]]:
        """Changes of the same kind together: (before, after, subjects)."""
        subjects_by_change: dict[tuple[str, str], list[str]] = {}
        for change in self.pivots[0].changes:
            subjects_by_change.setdefault((change.before, change.after), []).append(change.subject)
        return [(before, after, subjects) for (before, after), subjects in subjects_by_change.items()]


def moments(pivots: Sequence[Pivot]) -> tuple[Moment, ...]:
    """The timeline as folded: a headline only where it is new, and moments without change folded."""
    folded: list[Moment] = []
    headline = ""
    for pivot in pivots:
        entry = replace(pivot, headline="" if pivot.headline == headline else pivot.headline)
        headline = pivot.headline
        fold = folded and folded[-1].quiet and not entry.changes and not entry.headline
        if fold:
            folded[-1] = Moment((*folded[-1].pivots, entry))
        else:
            folded.append(Moment((entry,)))
    return tuple(folded)


def _arrival_key(evidence: Evidence) -> object:
    """The key of evidence that arrived together: a run, a stage of the sample, a collector's answer, else one paste."""
    if evidence.origin == "sample":
        return evidence.label.partition("/")[0]
    bundle = evidence.sha256 if evidence.reader == BUNDLE else evidence.meta.get("bundle")
    if bundle:
        return (bundle, evidence.epoch)
    return evidence.run_id or evidence.pk


def _step_title(group: list[Evidence]) -> str:
    first = group[0]
    if first.run is not None:
        return f"Run {first.run.number}: {first.run.kind} on {first.view}"
    if first.origin == "sample":
        return f"The account, stage “{_arrival_key(first)}”"
    if first.reader == BUNDLE or first.meta.get("bundle"):
        views = {evidence.view for evidence in group if evidence.view}
        return first.label or f"The collector’s answer from the {'/'.join(sorted(views)) or 'machine'}"
    return first.label or f"A {first.origin}"
