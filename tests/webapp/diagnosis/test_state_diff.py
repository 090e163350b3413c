"""What is different between two states, part by part, and what of it can matter for P2P."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents.facts import Fact, Reading, all_facts
from agents.facts.bench import COPY, CopyResult
from agents.facts.gpu import GPUS, Gpu
from agents.facts.host import HOST_CMDLINE
from agents.facts.nccl import ENGINE, Engine
from agents.facts.p2p import P2P_READ, TOPOLOGY, P2pCode, P2pMatrix, TopologyMatrix
from agents.facts.platform import KVM_VISIBLE, MACHINE_TYPE, MachineType
from agents.facts.vm import VMS, Vm
from tests.webapp.diagnosis.sample_facts import facts_at
from webapp.diagnosis.compare.conditions import Side, machine
from webapp.diagnosis.compare.state_diff import Difference, StateDiff, diff_states
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.reference.p2p_relevance import RULES, Bears, relevance


def between(before: Reading[Any], after: Reading[Any]) -> StateDiff:
    old = Sourced(before, "a", 0)
    return diff_states(Facts.of([old]), Facts.of([old, Sourced(after, "b", 1)]))


def parts(found: StateDiff) -> list[tuple[tuple[str, ...], str | None, str | None]]:
    return [(d.names, d.before, d.after) for d in found.differences]


def test_words_of_a_command_line_are_a_set() -> None:
    found = between(HOST_CMDLINE.known("quiet ro noht"), HOST_CMDLINE.known("iommu=pt ro x=1"))
    assert parts(found) == [(("quiet", "noht"), "set", None), (("x",), None, "1"), (("iommu",), None, "pt")]
    assert found.differences[-1].relevance.bears is Bears.NO
    same = between(HOST_CMDLINE.known("a b"), HOST_CMDLINE.known("b a"))
    assert same.differences == ()
    assert same.same == ("Host kernel command line",)


def test_flags_of_the_engine_are_compared_one_by_one() -> None:
    old, new = Engine("sglang", "0.5", {"tp": "8", "x": "1"}), Engine("sglang", "0.5", {"tp": "4"})
    found = between(ENGINE.known(old), ENGINE.known(new))
    assert parts(found) == [(("flags tp",), "8", "4")]


def test_a_value_for_programs_is_said_in_words() -> None:
    boards = between(MACHINE_TYPE.known(MachineType.I440FX), MACHINE_TYPE.known(MachineType.OTHER))
    assert parts(boards) == [(("",), "i440FX", "another board")]
    hidden = between(KVM_VISIBLE.known(True), KVM_VISIBLE.known(False))
    assert parts(hidden) == [(("",), "yes", "no")]
    one = Sourced(MACHINE_TYPE.known(MachineType.I440FX), "a", 0)
    assert machine(Side((one,), Facts.of([one]))) == "i440FX"


def matrix(code: P2pCode, odd: P2pCode) -> P2pMatrix:
    return P2pMatrix(("GPU0", "GPU1", "GPU2"), ((None, code, odd), (code, None, code), (odd, code, None)))


def test_cells_of_a_matrix_that_changed_alike_are_one_difference() -> None:
    old, new = matrix(P2pCode.NS, P2pCode.NS), matrix(P2pCode.OK, P2pCode.NS)
    (found,) = between(P2P_READ.known(old), P2P_READ.known(new)).differences
    assert (len(found.names), found.before, found.after) == (4, "NS", "OK")
    assert found.relevance.bears is Bears.YES
    links = TopologyMatrix(("GPU0", "GPU1"), ((None, "PIX"), ("PIX", None)))
    apart = TopologyMatrix(("GPU0", "GPU1"), ((None, "PHB"), ("PHB", None)))
    assert parts(between(TOPOLOGY.known(links), TOPOLOGY.known(apart))) == [(("GPU0 – GPU1",), "PIX", "PHB")]


def test_keys_of_the_vm_and_what_waits_for_its_next_start() -> None:
    old = Vm(id=128, config={"cpu": "host", "memory": "1"}, pending={})
    new = Vm(id=128, config={"cpu": "host,hidden=1", "memory": "1"}, pending={"machine": "q35"})
    found = between(VMS.known((old,)), VMS.known((new,)))
    assert parts(found) == [(("VM 128 cpu",), "host", "host,hidden=1"), (("VM 128 pending machine",), None, "q35")]
    assert [d.relevance.bears for d in found.differences] == [Bears.YES, Bears.NO]


def test_what_moves_by_itself_or_was_not_asked_is_no_difference() -> None:
    before = Gpu(0, name="A", power_w=300.0, utilisation_percent=99, power_limit_w=600.0)
    after = Gpu(0, name="A", power_w=80.0, utilisation_percent=3)
    assert between(GPUS.known((before,)), GPUS.known((after,))).differences == ()


def test_a_card_that_is_gone_is_one() -> None:
    two = (Gpu(0, name="A"), Gpu(1, name="A"))
    (found,) = between(GPUS.known(two), GPUS.known(two[:1])).differences
    assert (found.names, found.before, found.after) == (("GPU 1",), "there", None)
    assert found.relevance.bears is Bears.YES


def test_what_is_not_there_any_more_is_told_from_what_was_not_read() -> None:
    gone = between(ENGINE.known(Engine("vllm")), ENGINE.absent("no engine runs"))
    assert [(d.before, d.after) for d in gone.differences] == [("vllm", None)]
    for reading in (ENGINE.not_run("x"), ENGINE.unreadable("x")):
        assert between(ENGINE.known(Engine("vllm")), reading).not_again == ("Serving engine",)
    only = diff_states(Facts.of([]), Facts.of([Sourced(ENGINE.known(Engine("vllm")), "a")]))
    assert only.only_after == ("Serving engine",)


def test_measurements_are_compared_elsewhere() -> None:
    found = between(COPY.known(CopyResult(())), COPY.known(CopyResult((), (), {"driver": "x"})))
    assert found == StateDiff((), (), (), ())


def test_the_founding_case() -> None:
    facts = facts_at("after")
    every = [item for group in facts.readings.values() for item in group]
    found = diff_states(Facts.of(i for i in every if i.epoch == 0), facts)
    told = {(d.fact_id, d.names[0]): d for d in found.differences}
    assert _seen(told, "host.vms", "VM 128 machine") == (None, "q35", Bears.NO)
    assert _seen(told, "host.kernel_cmdline", "iommu") == (None, "pt", Bears.NO)
    assert _seen(told, "guest.topology", "GPU4 – GPU5") == ("PIX", "PHB", Bears.YES)
    assert "Peer reads, driver’s answer" in found.same
    assert found.differences[0].relevance.bears is Bears.YES
    assert all(d.refs_before and d.refs_after for d in found.differences)


def _seen(told: dict[tuple[str, str], Difference], fact_id: str, name: str) -> tuple[str | None, str | None, Bears]:
    found = told[fact_id, name]
    return found.before, found.after, found.relevance.bears


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.fact} {rule.name}")
def test_every_rule_is_of_some_fact_and_can_be_reached(rule: Any) -> None:
    of = [fact_id for fact_id in all_facts() if fact_id.startswith(rule.fact)]
    assert of, "no such fact"
    re.compile(rule.name)
    earlier = RULES[: RULES.index(rule)]
    everything = [r for r in earlier if r.name == ".*" and not r.words]
    assert not any(rule.fact.startswith(r.fact) for r in everything)


@pytest.mark.parametrize(
    ("fact_id", "name", "before", "after", "bears"),
    [
        ("host.vms", "VM 1 hostpci0", "mapping=a", "mapping=a,pcie=1", Bears.NO),
        ("host.vms", "VM 1 hostpci0", "mapping=a", "mapping=b", Bears.YES),
        ("host.vms", "VM 1 hostpci0", "mapping=a", "mapping=a,pcie=1,x-vga=1", Bears.YES),
        ("host.vms", "VM 1 machine", None, "q35", Bears.NO),
        ("host.vms", "VM 1 machine", "q35", "q35,viommu=intel", Bears.YES),
        ("host.kernel_cmdline", "amd_iommu", None, "on", Bears.NO),
        ("host.kernel_cmdline", "amd_iommu", None, "off", Bears.YES),
        ("host.kernel_cmdline", "iommu", None, "pt", Bears.NO),
    ],
)
def test_what_came_or_went_decides(fact_id: str, name: str, before: str | None, after: str, bears: Bears) -> None:
    assert relevance(fact_id, name, before, after).bears is bears


def test_what_no_rule_knows_is_not_called_harmless() -> None:
    assert relevance("guest.something_new", "x", "a", "b").bears is Bears.UNKNOWN
    fact: Fact[str] = Fact("guest.something_new", "x", str)
    assert relevance(fact.id, "", "a", None).why == "not known to enter it, and not ruled out"
