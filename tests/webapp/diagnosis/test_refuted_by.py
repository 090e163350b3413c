"""What a hypothesis says refutes it: known names, read by its rule, and true of what the rule does."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import Reading, all_facts
from agents.facts.bench import PROFILE, TELEMETRY, GpuTelemetry, Profile
from agents.facts.gpu import FABRIC, GPU_COUNT_SMI, GPUS, XID_EVENTS, Fabric, XidEvent
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode
from agents.facts.platform import NUMA_NODES, VIRT_KIND, NumaNode
from agents.facts.workload import MODEL, OBSERVED, PARALLELISM, Model, Observed
from agents.probes import all_probes
from tests.webapp.diagnosis.building import EIGHT, facts_of, kvm_guest, matrix
from tests.webapp.diagnosis.hypothesis_cases import verdict
from tests.webapp.diagnosis.sample_facts import diagnosed, facts_at
from tests.webapp.diagnosis.scenarios import SCENARIOS
from tests.webapp.diagnosis.test_hypotheses_machine import ALL
from webapp.diagnosis.case import Bound, Verdict, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis

QUOTED = re.compile(r"“([^”]+)”")
EVERY = pytest.mark.parametrize("hypothesis", all_hypotheses(), ids=lambda h: h.id)
Given = Sequence[Reading[Any] | Bound]


@cache
def told_by() -> dict[str, frozenset[str]]:
    """Ids of the facts behind each title of a fact, a probe or a benchmark."""
    found: dict[str, set[str]] = defaultdict(set)
    for fact in all_facts().values():
        found[fact.title].add(fact.id)
    for probe in all_probes().values():
        found[probe.title] |= {fact.id for fact in probe.supplies}
    for benchmark in all_benchmarks().values():
        found[benchmark.title] |= {fact.id for fact in benchmark.supplies}
    return {title: frozenset(ids) for title, ids in found.items()}


def named(hypothesis: Hypothesis) -> set[str]:
    return {fact for title in QUOTED.findall(hypothesis.refuted_by) for fact in told_by()[title]}


@cache
def read() -> dict[str, frozenset[str]]:
    """Ids of the facts that each rule read or looked for, over every scenario, stage and case."""
    found: dict[str, set[str]] = defaultdict(set)
    samples = (facts_at(stage) for stage in ("first", "guest", "host", "after"))
    for facts in (*(scenario.facts for scenario in SCENARIOS), *samples):
        for name, one in diagnose(facts).verdicts.items():
            found[name] |= one.reads.every
    for name, cases in ALL.items():
        for given in cases.values():
            found[name] |= verdict(name, *given).reads.every
    return {name: frozenset(ids) for name, ids in found.items()}


@EVERY
def test_it_is_one_sentence_that_names_what_people_know(hypothesis: Hypothesis) -> None:
    text = hypothesis.refuted_by
    assert text.endswith(".")
    assert 40 < len(text) <= 190
    assert "\n" not in text
    titles = QUOTED.findall(text)
    assert titles
    assert set(titles) <= told_by().keys()


@EVERY
def test_what_it_names_is_read_by_its_rule(hypothesis: Hypothesis) -> None:
    for title in QUOTED.findall(hypothesis.refuted_by):
        assert told_by()[title] & read()[hypothesis.id], title


def refuted_in_cases() -> Iterator[tuple[str, str, frozenset[str]]]:
    """A hypothesis, where it is refuted, and the facts whose outputs the claims against it cite."""
    for name, cases in ALL.items():
        given = facts_of(*(item for item in cases["refuted"] if isinstance(item, Reading)))
        yield name, "its case", _cited(verdict(name, *cases["refuted"]), given)
    for scenario in SCENARIOS:
        for name, found in diagnose(scenario.facts).verdicts.items():
            if found.kind is VerdictKind.REFUTED:
                yield name, scenario.name, _cited(found, scenario.facts)


def _cited(found: Verdict, facts: Facts) -> frozenset[str]:
    assert found.kind is VerdictKind.REFUTED
    sources = {ref.source for claim in found.against for ref in claim.evidence}
    groups = facts.readings.items()
    return frozenset(name for name, group in groups if any(s.source in sources for s in group))


# What tells that no pair goes over PCIe.
NO_PAIR = {fact.id for fact in (GPUS, GPU_COUNT_SMI, TOPOLOGY, PARALLELISM)}


def test_whatever_refutes_one_is_named_by_it() -> None:
    """Writes are said beside reads; a bound that a case hands in without its measurements rests on the
    observed speed."""
    by_id = {hypothesis.id: hypothesis for hypothesis in all_hypotheses()}
    seen = set()
    for name, where, facts in refuted_in_cases():
        known = named(by_id[name])
        known |= {P2P_WRITE.id} if P2P_READ.id in known else set()
        known |= {OBSERVED.id} if where == "its case" else set()
        known |= NO_PAIR if "no pair goes over PCIe" in by_id[name].refuted_by else set()
        assert facts & known, (name, where, facts)
        seen.add(name)
    assert seen == by_id.keys()


def test_machines_as_they_are_met_refute_most_of_them() -> None:
    """The others need a measurement or a look that no scenario has; their own case refutes them."""
    refuted = {name for name, where, _ in refuted_in_cases() if where != "its case"}
    refuted |= {name for name, found in diagnosed("after").verdicts.items() if found.kind is VerdictKind.REFUTED}
    assert refuted <= {hypothesis.id for hypothesis in all_hypotheses()}
    assert len(refuted) >= 16


# --- each part of a sentence, at the edge that it names -----------------------------------------------


def _profile(**ms: float) -> Reading[Any]:
    parts = {"nccl_ms": 0.0, "attention_ms": 0.0, "moe_ms": 0.0, "other_ms": 0.0, "gaps_ms": 0.0}
    return PROFILE.known(Profile(**{**parts, **ms}), lines=(1,))


def _bound(concurrency: int, **parts_ms: Any) -> Given:
    seen = OBSERVED.known((Observed(concurrency, (10.0, 10.0)),), lines=(1,))
    return [seen, replace(Bound(concurrency, step_ms=(100.0, 100.0)), **parts_ms)]


def _model(hidden: int) -> Reading[Any]:
    return MODEL.known(Model(hidden_size=hidden, activation_bytes=2), lines=(1,))


def _busy(power_w: float, celsius: int) -> Reading[Any]:
    gpu = replace(EIGHT[0], utilisation_percent=100, power_w=power_w, power_limit_w=600.0, temperature_celsius=celsius)
    return GPUS.known(tuple(replace(gpu, index=i) for i in range(8)), lines=(1,))


def _allowed(read_code: P2pCode, write_code: P2pCode) -> Given:
    kept = [r for r in kvm_guest() if r.fact_id not in {P2P_READ.id, P2P_WRITE.id}]
    answers = ((P2P_READ, read_code), (P2P_WRITE, write_code))
    return [*kept, *(fact.known(matrix(8, code), lines=(1,)) for fact, code in answers)]


SLOWED = GpuTelemetry("0", 20, throttle_reasons=("hardware thermal slowdown",), throttled_percent=40.0)
EDGES: list[tuple[str, Given, Given]] = [
    ("communication_latency_bound", [_profile(nccl_ms=10, moe_ms=90)], [_profile(nccl_ms=11, moe_ms=89)]),
    ("launch_bound", [_profile(gaps_ms=10, moe_ms=90)], [_profile(gaps_ms=11, moe_ms=89)]),
    ("compute_bound", [_profile(moe_ms=50, gaps_ms=50)], [_profile(moe_ms=51, gaps_ms=49)]),
    ("communication_bandwidth_bound", [*_bound(64), _model(2047)], [*_bound(64), _model(2048)]),
    (
        "communication_bandwidth_bound",
        [*_bound(64, comm_ms=(1.0, 10.0)), _model(4096)],
        [*_bound(64, comm_ms=(1.0, 11.0)), _model(4096)],
    ),
    ("communication_latency_bound", _bound(1, comm_ms=(1.0, 10.0)), _bound(1, comm_ms=(1.0, 11.0))),
    ("memory_bandwidth_bound", _bound(1, floor_ms=(1.0, 25.0)), _bound(1, floor_ms=(1.0, 26.0))),
    (
        "p2p_unsupported_gpu",
        [GPUS.known((replace(EIGHT[0], name="NVIDIA L40S"),), lines=(1,))],
        [
            GPUS.known((replace(EIGHT[0], name="NVIDIA L40S"),), lines=(1,)),
            P2P_READ.known(matrix(8, P2pCode.GNS), lines=(1,)),
        ],
    ),
    ("power_or_thermal_limit", [_busy(480.0, 84)], [_busy(481.0, 84)]),
    ("power_or_thermal_limit", [_busy(480.0, 84)], [_busy(480.0, 85)]),
    ("power_or_thermal_limit", [_busy(480.0, 84)], [_busy(480.0, 84), TELEMETRY.known((SLOWED,), lines=(1,))]),
    ("p2p_denied_other", _allowed(P2pCode.OK, P2pCode.OK), _allowed(P2pCode.OK, P2pCode.NS)),
    ("p2p_denied_no_clique", _allowed(P2pCode.OK, P2pCode.OK), _allowed(P2pCode.OK, P2pCode.NS)),
    (
        "nvlink_fabric_down",
        [VIRT_KIND.known("none", lines=(1,)), FABRIC.known(Fabric("Completed", "Success"), lines=(1,))],
        [VIRT_KIND.known("none", lines=(1,)), FABRIC.known(Fabric("In Progress"), lines=(1,))],
    ),
    (
        "numa_misplacement",
        [VIRT_KIND.known("none", lines=(1,)), NUMA_NODES.known((NumaNode(0, "0-7"),), lines=(1,))],
        [VIRT_KIND.known("kvm", lines=(1,)), NUMA_NODES.known((NumaNode(0, "0-7"),), lines=(1,))],
    ),
    (
        "nccl_level_too_low",
        [*kvm_guest(P2pCode.OK), NCCL_TRANSPORTS.known(NcclTransports(p2p=16), lines=(1,))],
        [*kvm_guest(P2pCode.OK), NCCL_TRANSPORTS.known(NcclTransports(p2p=16, shm=1), lines=(1,))],
    ),
    (
        "gpu_lost",
        ALL["gpu_lost"]["refuted"],
        [
            *ALL["gpu_lost"]["refuted"],
            XID_EVENTS.known((XidEvent("0000:41:00.0", 79, "fallen off the bus"),), lines=(4,)),
        ],
    ),
]


@pytest.mark.parametrize(("name", "at", "beyond"), EDGES, ids=[name for name, _, _ in EDGES])
def test_it_holds_at_the_edge_and_not_beyond(name: str, at: Given, beyond: Given) -> None:
    assert verdict(name, *at).kind is VerdictKind.REFUTED
    assert verdict(name, *beyond).kind is not VerdictKind.REFUTED
