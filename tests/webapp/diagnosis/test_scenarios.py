"""Every scenario and every stage of the sample: the right gate, the right verdict, and no word too much."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from agents.facts import all_facts
from tests.webapp.diagnosis.sample_facts import diagnosed
from tests.webapp.diagnosis.scenarios import SCENARIOS, Scenario
from webapp.diagnosis.answer.headline import top_verdict
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.case import GateState
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.hypothesis import Severity

pytestmark = pytest.mark.thorough

STAGES = ("first", "guest", "host", "after")
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
NAMES = [*BY_NAME, *STAGES]

# What would say that peer-to-peer works. Sentences about other machines say so.
WORKS = re.compile(
    r"\b(?:P2P|peer-to-peer|peer access|direct access|(?:each other|one another) directly)\b"
    r"[^.;:]{0,30}?\b(?:works?|working|is up|is healthy|succeeds|delivers|is fine|is proven)\b"
    r"|\bbytes arrive\b|\bdata arrives?\b",
    re.I,
)
DENIES = re.compile(r"\b(?:not|never|no|whether|elsewhere|if|once|until|nothing)\b", re.I)
# A sentence about where milliseconds go, or how much faster something gets.
ABOUT_TIME = re.compile(r"\d\s?(?:ms|µs)\b|\d\s?×(?!\s?\d)|% of the (?:profiled )?step|% faster")
SOURCE_NAMED = re.compile(r"\([^()]*[A-Za-z]{3}[^)]*\)")


def around(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - 40) : match.end() + 35]


@cache
def result_of(name: str) -> Diagnosis:
    return diagnosed(name) if name in STAGES else diagnose(BY_NAME[name].facts)


def claims_of(result: Diagnosis) -> Iterator[tuple[str, Claim]]:
    for name, verdict in result.verdicts.items():
        yield from ((name, claim) for claim in (*verdict.for_, *verdict.against))
    for name, advice in result.advice.items():
        yield from ((name, claim) for claim in advice.why)
    for finding in result.findings:
        yield from ((finding.id, claim) for claim in finding.claims)
    for section in for_an_engineer(result):
        yield from ((section.title, claim) for claim in section.claims)


def texts_of(result: Diagnosis) -> Iterator[str]:
    yield from (result.headline, result.summary, for_a_manager(result))
    yield from (claim.text for _, claim in claims_of(result))
    yield from (note for section in for_an_engineer(result) for note in section.notes)
    yield from (gate.why for gate in result.ladder)
    yield from (gate.expected for gate in result.ladder if gate.expected)
    yield from (item.text for item in result.contradictions)
    yield from (text for bound in result.bounds for text in (*bound.assumes, *bound.missing))
    yield from (layout.why for layout in result.layouts)


def test_there_are_enough_of_them_and_their_names_differ() -> None:
    assert len(SCENARIOS) >= 40
    assert len(BY_NAME) == len(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_the_first_failing_gate_and_the_top_verdict(scenario: Scenario) -> None:
    result = result_of(scenario.name)
    failing = (f"{g.path} {g.gate}" for g in result.ladder if g.state is GateState.FAIL)
    assert next(failing, None) == scenario.fails
    top = top_verdict(result.verdicts)
    assert (top.id if top else None) == scenario.top
    assert scenario.contradicts <= {item.id for item in result.contradictions}


def test_p2p_is_never_said_to_work_unless_proven() -> None:
    for name in NAMES:
        if name in BY_NAME and BY_NAME[name].proven:
            continue
        result = result_of(name)
        delivered = any(g.gate == "delivered" and g.state is GateState.PASS for g in result.ladder)
        for text in texts_of(result):
            for sentence in re.split(r"(?<=[.;:])\s", text):
                match = WORKS.search(sentence)
                if match is None or DENIES.search(around(match)):
                    continue
                assert delivered, sentence
                assert "arrive" in match[0], sentence


def test_the_search_for_such_sentences_finds_them() -> None:
    for text in ("P2P works.", "Peer-to-peer is up", "The GPUs reach each other directly and it works"):
        assert WORKS.search(text), text
        assert not DENIES.search(text), text


def test_where_it_is_proven_every_gate_that_proves_it_passes() -> None:
    proven = [s for s in SCENARIOS if s.proven]
    assert proven
    for scenario in proven:
        passed = {g.gate for g in result_of(scenario.name).ladder if g.state is GateState.PASS}
        assert {"driver", "delivered", "collective"} <= passed, scenario.name


def test_every_claim_has_its_evidence_or_its_source() -> None:
    for name in NAMES:
        for where, claim in claims_of(result_of(name)):
            assert claim.text
            if not claim.evidence:
                assert claim.basis is Basis.LITERATURE, (where, claim.text)
                assert SOURCE_NAMED.search(claim.text), (where, claim.text)


def test_every_claim_about_time_has_a_range() -> None:
    for name in NAMES:
        for where, claim in claims_of(result_of(name)):
            if ABOUT_TIME.search(claim.text) and where not in QUOTES:
                assert claim.range is not None, (where, claim.text)
                assert claim.range[0] <= claim.range[1]


# Texts whose figures are somebody's words or a row as printed.
QUOTES = {"What contradicts itself", "rejected_rows"}


def test_unknown_never_looks_like_healthy() -> None:
    for name in NAMES:
        for gate in result_of(name).ladder:
            if gate.state in {GateState.PASS, GateState.FAIL}:
                assert gate.evidence, gate
            assert gate.why


JARGON = re.compile(
    r"\b(?:P2P|NCCL|NS|CNS|clique|IOMMU|BARs?|KVM|QEMU|TP\d?|SHM|PHB|PXB|PCIe|VFIO|ACS|MIG|kernels?|"
    r"all-reduces?|collectives?|step|topo|hostpci|q35|i440FX|CUDA|Proxmox|bench|user)\b"
)


def test_a_manager_reads_one_paragraph_without_the_fields_words() -> None:
    for name in NAMES:
        text = for_a_manager(result_of(name))
        assert "\n" not in text
        assert 80 < len(text) < 1000
        assert text.endswith(".")
        assert not JARGON.search(text), JARGON.search(text)
        assert text.count("not a measurement") <= 1


def test_an_engineers_page_is_one_page() -> None:
    for name in NAMES:
        sections = for_an_engineer(result_of(name))
        lines = [c.text for s in sections for c in s.claims] + [n for s in sections for n in s.notes]
        assert len(sections) == len({section.title for section in sections})
        assert 3 <= len(lines) <= 80
        assert all(section.claims or section.notes for section in sections)


def test_the_managers_figures_are_the_diagnosiss() -> None:
    result = diagnosed("guest")
    bound = result.bounds[0]
    assert bound.max_gain_remove_comm
    assert bound.max_gain_p2p
    text = for_a_manager(result)
    assert f"at most {(bound.max_gain_remove_comm[1] - 1) * 100:.0f} % faster" in text
    assert f"at most {(bound.max_gain_p2p[1] - 1) * 100:.0f} % faster" in text
    assert "out of reach by direct access alone" in text
    assert "nothing is restarted" in text
    assert "estimate" in text


def test_every_hypothesis_has_its_rank() -> None:
    """No two have the same, and what is said before the figures is ranked before what is said after them."""
    ranked = sorted(all_hypotheses(), key=lambda hypothesis: hypothesis.rank)
    assert len({hypothesis.rank for hypothesis in ranked}) == len(ranked)
    order = [*Severity]
    severities = [order.index(hypothesis.severity) for hypothesis in ranked]
    assert severities == sorted(severities)


def test_the_scenarios_use_only_facts_of_the_vocabulary() -> None:
    known = set(all_facts())
    assert {i.reading.fact_id for s in SCENARIOS for i in s.items} <= known
