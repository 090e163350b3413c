"""Which rows a comparison counts, and what the two sides are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import (
    ALLREDUCE,
    COPY,
    DELIVERY,
    SERVING,
    AllReduceResult,
    AllReduceRow,
    CopyPath,
    CopyResult,
    CopyRow,
    DeliveryResult,
    ServingRow,
    Timing,
)
from agents.facts.gpu import GPUS, Gpu
from agents.facts.p2p import P2P_READ, TOPOLOGY, P2pCode
from agents.facts.platform import CUDA_VERSION
from tests.webapp.diagnosis.building import facts_of, matrix, sourced, topology
from webapp.diagnosis.case import GateState
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.compare import conditions
from webapp.diagnosis.compare.allreduces import compare_allreduces
from webapp.diagnosis.compare.comparability import Gate
from webapp.diagnosis.compare.conditions import facts_in, side_of
from webapp.diagnosis.compare.copies import compare_copies
from webapp.diagnosis.compare.effects import Outcome, SizeEffect, excluded, spread
from webapp.diagnosis.compare.energy import compare_energy
from webapp.diagnosis.compare.fact_comparisons import compare_facts
from webapp.diagnosis.compare.kinds import KINDS, results
from webapp.diagnosis.compare.post_checks import opens_p2p, post_checks
from webapp.diagnosis.compare.predictions import Chosen
from webapp.diagnosis.compare.state_diff import diff_states
from webapp.diagnosis.compare.verification import Pick, verified
from webapp.diagnosis.facts import Facts

NS, OK = P2pCode.NS, P2pCode.OK
SUMS = next(kind for kind in KINDS if kind.fact is ALLREDUCE)
GRAPH = AllReduceRow(4096, 20.0, 8, graph=True)


def rung(concurrency: int, per_joule: float | None, power_w: float | None = 200.0) -> ServingRow:
    return ServingRow(concurrency, 100.0, tokens_per_joule=per_joule, power_w=power_w)


def test_energy_is_compared_at_rungs_that_both_sides_measured() -> None:
    (energy,) = compare_energy([(rung(1, 0.5), rung(4, 2.0))], [(rung(1, 1.0), rung(8, 2.0))])
    assert (energy.rung, energy.before, energy.after, energy.ratio) == ("1 at once", 0.5, 1.0, 2.0)


@pytest.mark.parametrize("row", [rung(1, None), rung(1, 0.5, None), rung(1, 0.0)])
def test_a_rung_without_power_has_no_energy(row: ServingRow) -> None:
    assert compare_energy([(row,)], [(rung(1, 1.0),)]) == ()


@pytest.mark.parametrize(
    ("before", "after", "speedup"),
    [
        ((GRAPH,), (replace(GRAPH, time_us=10.0),), 2.0),
        # A queued row beside one in a graph is what launching costs.
        ((GRAPH,), (replace(GRAPH, time_us=99.0, graph=False), replace(GRAPH, time_us=10.0)), 2.0),
        ((replace(GRAPH, time_us=0.0), GRAPH), (replace(GRAPH, time_us=10.0),), 2.0),
        ((replace(GRAPH, time_us=1.0, unstable=True), GRAPH), (replace(GRAPH, time_us=10.0),), 2.0),
        ((replace(GRAPH, time_us=1.0, wrong=3), GRAPH), (replace(GRAPH, time_us=10.0),), 2.0),
        ((replace(GRAPH, graph=False),), (replace(GRAPH, graph=False, time_us=40.0),), 0.5),
        ((GRAPH,), (replace(GRAPH, in_place=True),), None),
        ((GRAPH,), (replace(GRAPH, ranks=4),), None),
    ],
)
def test_the_rows_of_an_all_reduce_that_count(
    before: tuple[AllReduceRow, ...], after: tuple[AllReduceRow, ...], speedup: float | None
) -> None:
    effects = compare_allreduces(AllReduceResult(before), AllReduceResult(after)).effects
    assert [effect.speedup for effect in effects] == ([] if speedup is None else [pytest.approx(speedup)])


def test_a_graph_on_one_side_alone_is_another_clock() -> None:
    eager = AllReduceResult((replace(GRAPH, graph=False),))
    assert compare_allreduces(AllReduceResult((GRAPH,)), eager).outcome is Outcome.CANNOT_TELL


@pytest.mark.parametrize(("timing", "graph", "counts"), [(Timing.DEVICE, None, True), (Timing.HOST_SYNC, None, False)])
def test_a_program_that_tells_no_graph_counts_by_its_clock(timing: Timing, graph: bool | None, counts: bool) -> None:
    slow = AllReduceResult((replace(GRAPH, graph=graph, time_us=40.0),), timing=timing)
    effects = compare_allreduces(AllReduceResult((GRAPH,)), slow).effects
    assert bool(effects) is counts


def copy(time_us: float, timing: Timing = Timing.DEVICE, size: int = 4096, unstable: bool = False) -> CopyRow:
    return CopyRow(CopyPath.PEER, "0", "1", size, time_us, timing, unstable=unstable)


@pytest.mark.parametrize(
    ("before", "after", "speedup"),
    [
        ((copy(9.0), copy(8.0)), (copy(4.0), copy(5.0)), 2.0),
        ((copy(8.0), copy(1.0, Timing.HOST_SYNC)), (copy(4.0),), 2.0),
        ((copy(8.0), copy(0.0)), (copy(4.0),), 2.0),
        ((copy(8.0), copy(1.0, unstable=True)), (copy(4.0),), 2.0),
        ((copy(8.0),), (copy(4.0, size=8192),), None),
    ],
)
def test_the_rows_of_a_copy_that_count(
    before: tuple[CopyRow, ...], after: tuple[CopyRow, ...], speedup: float | None
) -> None:
    effects = compare_copies(CopyResult(before), CopyResult(after)).effects
    assert [effect.speedup for effect in effects] == ([] if speedup is None else [pytest.approx(speedup)])


def test_nccls_own_choice_takes_the_place_of_forced_arms() -> None:
    free, forced = (AllReduceResult((GRAPH,), environment={"arm": arm}) for arm in ("default", "no P2P"))
    old, unread = ALLREDUCE.known(AllReduceResult((GRAPH,))), ALLREDUCE.unreadable("cut")
    both = facts_of(ALLREDUCE.known(forced), ALLREDUCE.known(free), unread, old)
    assert [item.reading.value for item in results(both, SUMS)] == [free, old.value]
    assert [item.reading.value for item in results(facts_of(ALLREDUCE.known(forced)), SUMS)] == [forced]


@pytest.mark.parametrize(
    ("effects", "rules_out"),
    [
        ((), False),
        ((SizeEffect("peer", 1, 10, 10, 1.0),), True),
        ((SizeEffect("peer", 1, 10, 10, 1.0, 0.7, 1.49),), True),
        ((SizeEffect("peer", 1, 10, 10, 1.0, 0.7, 1.5),), False),
        ((SizeEffect("peer", 1, 10, 10, 1.0, 0.6, 1.2),), False),
        ((SizeEffect("peer", 1, 10, 10, 1.0), SizeEffect("peer", 2, 20, 10, 2.0)), False),
    ],
)
def test_what_single_runs_rule_out(effects: tuple[SizeEffect, ...], rules_out: bool) -> None:
    assert bool(excluded(effects)) is rules_out


def test_the_spread_is_between_runs_of_one_state() -> None:
    assert spread(({("a", 1): [10.0, 12.0]}, {("a", 1): [30.0, 33.0]})) == pytest.approx(0.2)
    assert spread(({("a", 1): [10.0]}, {("a", 1): [20.0]})) is None


@pytest.mark.parametrize(
    ("declared", "changes", "after", "opens"),
    [
        (OK, ("guest.p2p_read",), (), True),
        (NS, ("guest.p2p_read",), (), False),
        (None, ("guest.engine",), (P2P_READ.known(matrix(2, OK), lines=(1,)),), False),
        (None, ("guest.p2p_read",), (), True),
        (None, ("guest.p2p_read",), (P2P_READ.known(matrix(2, NS), lines=(1,)),), False),
        (None, ("guest.p2p_read",), (P2P_READ.known(matrix(3, NS, (0, 1, OK)), lines=(1,)),), True),
    ],
)
def test_a_change_that_may_open_p2p_is_checked_afterwards(
    declared: P2pCode | None, changes: tuple[str, ...], after: tuple[Reading[Any], ...], opens: bool
) -> None:
    option = Chosen("x", "X", None, Basis.ESTIMATED, changes, declared)
    assert opens_p2p(option, facts_of(*after)) is opens


TWO = (
    GPUS.known((Gpu(0), Gpu(1)), lines=(1,)),
    TOPOLOGY.known(topology(2, "PHB"), lines=(2,)),
    P2P_READ.known(matrix(2, OK), lines=(3,)),
)


@pytest.mark.parametrize(
    ("pairs", "state"),
    [
        ({"0->1": True, "1->0": True}, GateState.PASS),
        ({"0->1": True, "1->0": False}, GateState.FAIL),
        ({"0->1": True}, GateState.UNKNOWN),
        ({}, GateState.UNKNOWN),
    ],
)
def test_both_directions_of_a_pair_are_checked(pairs: dict[str, bool], state: GateState) -> None:
    delivery = DELIVERY.known(DeliveryResult(pairs), lines=(4,))
    arrived, _ = post_checks(facts_of(*TWO, delivery))
    assert arrived.state is state


def test_without_a_topology_the_pcie_path_is_checked() -> None:
    arrived, sums = post_checks(facts_of())
    assert (arrived.state, sums.state) == (GateState.UNKNOWN, GateState.UNKNOWN)
    assert (arrived.fact_id, sums.fact_id) == (DELIVERY.id, ALLREDUCE.id)


def serving_facts(epoch: int, driver: str, tokens: float) -> list[Any]:
    row = ServingRow(1, tokens, requests=40, power_w=200.0, tokens_per_joule=tokens / 200)
    readings = (SERVING.known((row,), lines=(1,)), CUDA_VERSION.known("13.0"))
    return sourced(*readings, epoch=epoch)


def test_serving_is_compared_with_its_energy() -> None:
    facts = Facts.of([*serving_facts(0, "580", 100.0), *serving_facts(1, "580", 200.0)])
    (item,) = verified(facts, Pick(0), Pick(1), frozenset())
    assert item.gate.verdict is Gate.CAVEATS
    assert [energy.ratio for energy in item.energy] == [pytest.approx(2.0)]
    assert verified(facts, Pick(0), Pick(2), frozenset()) == ()


def test_a_side_knows_what_was_read_in_its_epoch_alone() -> None:
    facts = Facts.of([*serving_facts(0, "580", 100.0), *sourced(CUDA_VERSION.known("13.1"), epoch=1)])
    old = side_of(facts.all(SERVING), facts)
    assert conditions.cuda(old) == "13.0"
    assert conditions.samples(old) == 40.0
    assert conditions.sizes(old) == "1"
    assert facts_in(facts, {1}).value(CUDA_VERSION) == "13.1"
    assert facts_in(facts, {2}).value(CUDA_VERSION) is None


def named(epoch: int, names: str) -> Facts:
    gpus = tuple(Gpu(index, name=name) for index, name in enumerate(names))
    return facts_of(GPUS.known(gpus, lines=(1,)), epoch=epoch)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("AA", "BB", [("A", "B", 2)]),
        ("AA", "BA", [("A", "B", 1)]),
        ("AA", "AA", []),
        ("AC", "BD", [("A", "B", 1), ("C", "D", 1)]),
        ("ABCD", "EFGH", [("A, B, C, D", "E, F, G, H", 4)]),
    ],
)
def test_what_changed_alike_is_told_once(before: str, after: str, told: list[tuple[str, str, int]]) -> None:
    differences = diff_states(named(0, before), named(1, after)).differences
    assert [(item.before, item.after, len(item.names)) for item in differences] == told


def test_what_the_runs_cannot_tell_is_told_as_that() -> None:
    """Single runs that differ by less than a doubling decide nothing."""
    old, new = (CopyResult((copy(us),), environment={"driver": "580"}) for us in (8.0, 8.1))
    facts = Facts.of([*sourced(COPY.known(old), epoch=0), *sourced(COPY.known(new), epoch=1)])
    measured = verified(facts, Pick(0), Pick(1), frozenset())
    sides = side_of((), facts), side_of((), facts)
    (row,) = (r for r in compare_facts(measured, sides, measured[0].gate, (COPY.id,)) if r.fact_id == COPY.id)
    assert (row.tells, row.named) == (False, True)
    assert len(row.sources) == 2
