"""What a rule says it rests on is what it read: named facts change something, and what does is named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import combinations

import pytest

from agents.facts.bench import COPY, CopyPath, CopyResult, CopyRow, Timing
from agents.facts.gpu import GPU_COUNT_SMI, GPUS
from agents.facts.p2p import P2P_READ, P2pCode
from agents.facts.platform import KVM_VISIBLE, VIRT_KIND
from agents.facts.workload import PARALLELISM
from tests.webapp.diagnosis.building import facts_of, kvm_guest
from tests.webapp.diagnosis.sample_facts import diagnosed, facts_at
from webapp.diagnosis.case import Advice, Contradiction, Finding, Gate, Verdict
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts

STAGES = ("first", "guest", "host", "after")
Result = Gate | Verdict | Advice | Finding | Contradiction
Outcomes = Mapping[str, tuple[Result, ...]]


@cache
def outcomes(stage: str, without: frozenset[str] = frozenset()) -> Outcomes:
    """What every rule says of a stage without these facts, with its words and lines. What a rule read is
    no part of a result when two are compared."""
    facts = facts_at(stage)
    kept = {name: group for name, group in facts.readings.items() if name not in without}
    result = diagnose(Facts(kept, facts.changes))
    found: dict[str, tuple[Result, ...]] = {f"gates.{g.gate} {g.path}": (g,) for g in result.ladder}
    found |= {f"hypotheses.{name}": (verdict,) for name, verdict in result.verdicts.items()}
    found |= {f"options.{name}": (advice,) for name, advice in result.advice.items()}
    found |= {f"findings.{finding.id}": (finding,) for finding in result.findings}
    clashes: dict[str, tuple[Result, ...]] = defaultdict(tuple)
    for clash in result.contradictions:
        clashes[f"contradictions.{clash.id}"] += (clash,)
    return found | clashes


def changed(stage: str, rule: str, without: Iterable[str], beside: Iterable[str] = ()) -> bool:
    """Whether the rule says another thing once these facts are missing too, `beside` others."""
    fewer = frozenset(beside)
    return outcomes(stage, fewer | frozenset(without)).get(rule) != outcomes(stage, fewer).get(rule)


def used(stage: str, rule: str) -> set[str]:
    """Facts that are ticked: read, and with a value."""
    readings = facts_at(stage).readings
    names = {name for result in outcomes(stage)[rule] for name in result.reads.used}
    return {name for name in names & readings.keys() if readings[name][0].reading.kind == "known"}


def idle(stage: str, rule: str) -> set[str]:
    """Ticked facts that change nothing, alone or beside others that by themselves change nothing."""
    alone = {name for name in used(stage, rule) if not changed(stage, rule, {name})}
    return {name for name in alone if not _one_of_several(stage, rule, name, alone - {name})}


def _one_of_several(stage: str, rule: str, name: str, others: set[str]) -> bool:
    groups = [*combinations(sorted(others), 1), *combinations(sorted(others), 2), tuple(sorted(others))]
    return any(changed(stage, rule, {name}, group) for group in groups if group)


def unnamed(stage: str, rule: str) -> set[str]:
    """Facts whose absence changes what the rule says, and that it does not name."""
    named = {name for result in outcomes(stage)[rule] for name in result.reads.every}
    return {name for name in facts_at(stage).readings.keys() - named if changed(stage, rule, {name})}


def wrong(stage: str) -> dict[str, tuple[set[str], set[str]]]:
    found = {rule: (idle(stage, rule), unnamed(stage, rule)) for rule in outcomes(stage)}
    return {rule: sets for rule, sets in found.items() if any(sets)}


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_named_matters_and_what_matters_is_named(stage: str) -> None:
    assert wrong(stage) == {}


def test_a_rule_that_rests_on_another_rests_on_what_that_one_read() -> None:
    """The driver refuses, so no detour matters: the answer is named, the wiring of the GPUs is not."""
    reads = diagnosed("after").rests_on("hypotheses.acs_detour")
    assert {P2P_READ.id, VIRT_KIND.id} <= reads.used
    assert not reads.used & {"host.gpu_paths", "host.iommu_groups", "host.pci_tree", GPUS.id}
    share = diagnosed("host").rests_on("hypotheses.p2p_denied_no_clique")
    assert {"host.vms", COPY.id, "user.model", "user.parallelism", "user.observed"} <= share.used


def test_what_was_looked_for_is_told_apart_from_what_was_read() -> None:
    reads = diagnosed("first").rests_on("gates.driver")
    assert P2P_READ.id in reads.gaps
    assert P2P_READ.id not in reads.used
    assert diagnosed("first").rests_on("options.one_that_is_gone").every == frozenset()


def test_figures_of_other_cards_are_left_out_by_the_list_of_cards() -> None:
    row = CopyRow(CopyPath.PEER, "0", "1", 12288, 13.7, Timing.DEVICE)
    copies = CopyResult((row,), environment={"gpus": "NVIDIA H200, NVIDIA H200"})
    facts = facts_of(*kvm_guest(P2pCode.NS), COPY.known(copies))
    reads = diagnose(facts).rests_on("hypotheses.communication_bandwidth_bound")
    assert COPY.id in reads.gaps
    assert GPUS.id in reads.used


def test_a_derived_value_is_read_by_each_that_uses_it_and_by_no_other() -> None:
    calls: list[Facts] = []

    def count(facts: Facts) -> int | None:
        calls.append(facts)
        return facts.value(GPU_COUNT_SMI)

    facts = facts_at("guest").scope()
    one, two, three = facts.scope(), facts.scope(), facts.scope()
    assert one.derived(count) == two.derived(count)
    assert len(calls) == 1
    assert one.reads.used == two.reads.used == {GPU_COUNT_SMI.id}
    assert not three.reads.every
    assert not facts.reads.every


def test_a_value_that_a_rule_has_no_use_for_is_not_read() -> None:
    facts = facts_at("guest").scope()
    assert facts.value(PARALLELISM, where=lambda parallel: parallel.tp == 1) is None
    assert not facts.reads.every
    assert not facts.exception(lambda facts: facts.value(GPU_COUNT_SMI) == 1)
    assert not facts.reads.used
    assert facts.aside.value(KVM_VISIBLE)
    assert facts.reads.words == {KVM_VISIBLE.id}
    assert not facts.reads.outcome
