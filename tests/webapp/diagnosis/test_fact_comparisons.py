"""A fact on both sides of a change: what changed, and whether that tells anything."""

from __future__ import annotations

from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import ALLREDUCE, COPY, SERVING, AllReduceResult
from agents.facts.gpu import GPU_COUNT_SMI
from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.p2p import P2P_READ, P2pCode
from agents.facts.platform import DRIVER_VERSION, KERNEL_CMDLINE
from agents.facts.vm import VM_ARGS
from tests.webapp.diagnosis.building import matrix, sourced
from webapp.diagnosis.compare.comparability import Comparability, Gate
from webapp.diagnosis.compare.conditions import Side
from webapp.diagnosis.compare.fact_comparisons import FactComparison, compare_facts, names_of, title_of
from webapp.diagnosis.facts import Facts

MIXED = matrix(3, P2pCode.NS, (0, 1, P2pCode.OK), (1, 2, P2pCode.CNS))
COMPARABLE = Comparability(Gate.COMPARABLE, "", ())


def compared(name: str, before: Reading[Any], after: Reading[Any]) -> FactComparison | None:
    sides = tuple(Side((), Facts.of(sourced(reading, epoch=e))) for e, reading in enumerate((before, after)))
    rows = compare_facts((), (sides[0], sides[1]), COMPARABLE, (name,))
    return next((row for row in rows if row.fact_id == name), None)


@pytest.mark.parametrize(
    ("before", "after", "change", "tells"),
    [
        (DRIVER_VERSION.known("580.95"), DRIVER_VERSION.known("590.44"), "580.95 → 590.44", True),
        (DRIVER_VERSION.known("580.95"), DRIVER_VERSION.known("580.95"), "as before", False),
        (DRIVER_VERSION.absent("no driver"), DRIVER_VERSION.known("580.95"), "not there → 580.95", True),
        (DRIVER_VERSION.known("580.95"), DRIVER_VERSION.absent("no driver"), "580.95 → not there", True),
        (VM_ARGS.known("-cpu a"), VM_ARGS.known("-cpu b"), "it changed", True),
        (VM_ARGS.known("-cpu a"), VM_ARGS.known("-cpu a"), "as before", False),
        (VM_ARGS.absent("none"), VM_ARGS.known("-cpu a"), "it changed", True),
        (GPU_COUNT_SMI.known(7), GPU_COUNT_SMI.known(8), "7 → 8", True),
        (KERNEL_CMDLINE.known("a" * 40), KERNEL_CMDLINE.known("b" * 40), "it changed", True),
        (P2P_READ.known(matrix(2, P2pCode.NS)), P2P_READ.known(matrix(2, P2pCode.OK)), "NS → OK", True),
        (P2P_READ.known(matrix(3, P2pCode.NS)), P2P_READ.known(MIXED), "it changed", True),
    ],
)
def test_a_fact_of_both_sides(before: Reading[Any], after: Reading[Any], change: str, tells: bool) -> None:
    row = compared(before.fact_id, before, after)
    assert row is not None
    assert (row.change, row.tells, row.named) == (change, tells, True)


@pytest.mark.parametrize("unread", [DRIVER_VERSION.not_run("refused"), DRIVER_VERSION.unreadable("cut")])
def test_a_side_without_an_answer_is_not_compared(unread: Reading[Any]) -> None:
    assert compared(DRIVER_VERSION.id, unread, DRIVER_VERSION.known("580.95")) is None
    assert compared(DRIVER_VERSION.id, DRIVER_VERSION.known("580.95"), unread) is None


def test_a_measurement_is_compared_by_its_own_rules_alone() -> None:
    results = ALLREDUCE.known(AllReduceResult(())), ALLREDUCE.known(AllReduceResult((), environment={"driver": "1"}))
    assert compared(ALLREDUCE.id, *results) is None


@pytest.mark.parametrize(
    ("verified_by", "changes", "names"),
    [
        ("guest.driver_version", (), ("guest.driver_version", SERVING.id)),
        (P2P_READ.id, ("vm.args",), (P2P_READ.id, "vm.args", ALLREDUCE.id, COPY.id, SERVING.id)),
        ("", (NCCL_TRANSPORTS.id,), (NCCL_TRANSPORTS.id, ALLREDUCE.id, SERVING.id)),
        ("bench.engine_profile, then bench.serving", (), (SERVING.id,)),
        ("the log", (), (SERVING.id,)),
    ],
)
def test_what_an_option_is_verified_by(verified_by: str, changes: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert names_of(verified_by, changes) == names


def test_a_fact_of_the_vm_is_told_from_the_guests() -> None:
    assert title_of("vm.args").endswith("(VM)")
    assert "(VM)" not in title_of("guest.kernel_cmdline")
    assert title_of("no.such_fact") == "no.such_fact"
