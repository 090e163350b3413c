"""The whole answer, and the one function that makes it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from webapp.diagnosis import contradictions, corrections
from webapp.diagnosis.answer.headline import headline, summary
from webapp.diagnosis.case import (
    Advice,
    Bound,
    Case,
    Contradiction,
    Correction,
    Finding,
    Gate,
    Layout,
    NextTest,
    Verdict,
)
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.facts import Facts, Reads
from webapp.diagnosis.findings import findings
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.ladder import judge_ladder
from webapp.diagnosis.next_test import next_tests
from webapp.diagnosis.option import Option
from webapp.diagnosis.prediction.bound import bounds
from webapp.diagnosis.prediction.layouts import layouts
from webapp.diagnosis.situation import Situation


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything a page or `diagnose --json` shows. facts: as they were read, those that decided nothing
    too. headline: one plain-language answer."""

    facts: Facts
    contradictions: tuple[Contradiction, ...]
    ladder: tuple[Gate, ...]
    verdicts: Mapping[str, Verdict]
    bounds: tuple[Bound, ...]
    findings: tuple[Finding, ...]
    next_tests: tuple[NextTest, ...]
    layouts: tuple[Layout, ...]
    advice: Mapping[str, Advice]
    corrections: tuple[Correction, ...]
    headline: str
    summary: str

    def rests_on(self, rule: str) -> Reads:
        """What a rule read here. rule: "gates.driver", "hypotheses.hang", "options.iommu_pt" or
        "contradictions.gpu_count"."""
        package, _, name = rule.partition(".")
        results: dict[str, Iterable[Gate | Verdict | Advice | Contradiction | None]] = {
            "gates": (gate for gate in self.ladder if gate.gate == name),
            "hypotheses": (self.verdicts.get(name),),
            "options": (self.advice.get(name),),
            "contradictions": (clash for clash in self.contradictions if clash.id == name),
        }
        reads = Reads()
        for result in results.get(package, ()):
            reads.add(result.reads if result else Reads())
        return reads


def judge(facts: Facts, *, vmid: int | None = None) -> Case:
    """Gates, bounds and verdicts, without what is advised. Other machines' figures decide nothing."""
    return _judge(Situation.of(facts, vmid).own_machine)


def _judge(situation: Situation) -> Case:
    case = Case(situation, judge_ladder(situation), bounds(situation))
    return replace(case, verdicts={h.id: _assess(h, case.scope()) for h in all_hypotheses()})


def _assess(hypothesis: Hypothesis, case: Case) -> Verdict:
    return replace(hypothesis.assess(case), reads=case.facts.reads)


def _advise(option: Option, case: Case) -> Advice:
    return replace(option.judge(case), reads=case.facts.reads)


def diagnose(facts: Facts, *, vmid: int | None = None) -> Diagnosis:
    """vmid: the VM under diagnosis, where the evidence names several and does not tell which."""
    situation = Situation.of(facts, vmid)
    case = _judge(situation.own_machine)
    advice = {option.id: _advise(option, case.scope()) for option in all_options()}
    return Diagnosis(
        facts=situation.facts,
        contradictions=contradictions.find(Case(situation, case.ladder, case.bounds)),
        ladder=case.ladder,
        verdicts=case.verdicts,
        bounds=case.bounds,
        findings=findings(case),
        next_tests=next_tests(case),
        layouts=layouts(case),
        advice=advice,
        corrections=corrections.find(situation),
        headline=headline(case),
        summary=summary(case),
    )
