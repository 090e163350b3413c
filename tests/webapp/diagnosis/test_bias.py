"""Our all-reduces beside nccl-tests': what is compared, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import Reading
from agents.facts.bench import (
    ALLREDUCE,
    COPY,
    PAIR_MATRICES,
    AllReduceResult,
    AllReduceRow,
    CopyPath,
    CopyResult,
    CopyRow,
    PairMatrix,
    Timing,
)
from agents.probe import Output
from tests.corpus import MEASUREMENTS, needs_corpus
from tests.webapp.diagnosis.building import facts_of, sourced
from webapp.diagnosis.compare.bias import AS_CHOSEN, WITHOUT, all_reduce_bias, copy_bias
from webapp.diagnosis.facts import Facts

PAYLOADS = Path(__file__).resolve().parents[2] / "agents" / "payloads"


def reading(time_us: float, *, arm: str = "", p2p: bool | None = None, **row: Any) -> Reading[AllReduceResult]:
    """arm: ours; else nccl-tests'."""
    environment = {"payload_sha256": "00", "arm": arm} if arm else {}
    rows = (AllReduceRow(**{"size_bytes": 12288, "ranks": 2, "in_place": True, "graph": True} | row, time_us=time_us),)
    return ALLREDUCE.known(AllReduceResult(rows, p2p, environment=environment), lines=(3,))


@needs_corpus
def test_two_h200_read_as_nccl_tests_does() -> None:
    ours = all_benchmarks()["bench.allreduce"].parse(Output((PAYLOADS / "two_h200_allreduce.jsonl").read_text()))
    text = (MEASUREMENTS / "h200x2" / "nccl-tests-graph-repeat.txt").read_text()
    on, off = text.split("OFF")[0], text.split("OFF")[1].split("ON")[0]
    head = "# nThread 1 nGpus 2 minBytes 12288 maxBytes 16777216 graph: 20\n"
    theirs = [
        *all_benchmarks()["bench.nccl_tests"].parse(Output(head + on)),
        *all_benchmarks()["bench.nccl_tests"].parse(Output("NCCL_P2P_DISABLE=1\n" + head + off)),
    ]
    found = {(b.arm, b.size_bytes): b.ratio for b in all_reduce_bias(facts_of(*ours, *theirs))}
    assert {arm for arm, _ in found} == {WITHOUT, AS_CHOSEN}
    assert found[AS_CHOSEN, 12288] == pytest.approx(1, abs=0.05)
    assert found[WITHOUT, 12288] == pytest.approx(1, abs=0.05)


def test_the_ratio_is_ours_to_theirs() -> None:
    (bias,) = all_reduce_bias(facts_of(reading(7.8, arm="default"), reading(7.5)))
    assert bias.ratio == pytest.approx(1.04)
    assert len(bias.evidence) == 2


@pytest.mark.parametrize(
    "theirs",
    [
        reading(7.5, size_bytes=49152),
        reading(7.5, ranks=8),
        reading(7.5, in_place=False),
        reading(7.5, graph=False),
        reading(7.5, p2p=False),
    ],
    ids=["size", "ranks", "out of place", "queued", "without P2P"],
)
def test_only_like_is_compared(theirs: Reading[AllReduceResult]) -> None:
    assert all_reduce_bias(facts_of(reading(7.8, arm="default"), theirs)) == ()


def test_a_run_before_the_change_is_not_compared() -> None:
    items = [*sourced(reading(7.5), epoch=0), *sourced(reading(7.8, arm="default"), epoch=1)]
    assert all_reduce_bias(Facts.of(items)) == ()


def copied(rate: float, access: bool, **row: Any) -> Reading[CopyResult]:
    size = row.pop("size_bytes", 16 * 2**20)
    made = CopyRow(CopyPath.PEER, "0", "1", size, size / rate / 1e3, Timing.DEVICE, peer_access=access, **row)
    return COPY.known(CopyResult((made,), environment={"payload_sha256": "00"}), lines=(2,))


def matrix(title: str, p2p: bool | None, unit: str = "GB/s") -> Reading[tuple[PairMatrix, ...]]:
    """GPU 0's row says 50, GPU 1's 40."""
    values = ((700.0, 50.0), (40.0, 700.0))
    return PAIR_MATRICES.known((PairMatrix(title, unit, ("0", "1"), values, p2p),), lines=(9,))


@pytest.mark.parametrize(
    ("title", "p2p", "access", "theirs"),
    [
        ("Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix", True, True, 50.0),
        ("Unidirectional P2P=Disabled Bandwidth Matrix", False, False, 50.0),
        ("device_to_device_memcpy_write_ce", None, True, 50.0),
        ("device_to_device_memcpy_read_ce", None, True, 40.0),  # the row is who reads
    ],
)
def test_large_copies_of_the_same_pair_are_compared(title: str, p2p: bool | None, access: bool, theirs: float) -> None:
    (bias,) = copy_bias(facts_of(copied(48.0, access), matrix(title, p2p)))
    assert bias.theirs_gb_per_s == theirs
    assert bias.ratio == pytest.approx(48.0 / theirs)


@pytest.mark.parametrize(
    "readings",
    [
        (copied(48.0, False), matrix("device_to_device_memcpy_write_ce", None)),
        (copied(48.0, True, size_bytes=2**20), matrix("device_to_device_memcpy_write_ce", None)),
        (copied(48.0, True, unstable=True), matrix("device_to_device_memcpy_write_ce", None)),
        (copied(48.0, True), matrix("Bidirectional P2P=Enabled Bandwidth Matrix", True)),
        (copied(48.0, True), matrix("device_to_device_memcpy_write_sm", None)),
        (copied(48.0, True), matrix("P2P=Enabled Latency (P2P Writes) Matrix", True, "us")),
        (copied(48.0, True),),
    ],
    ids=["peer access", "small", "unstable", "both ways", "by kernels", "latency", "no tool"],
)
def test_unlike_copies_are_not_compared(readings: tuple[Reading[Any], ...]) -> None:
    assert copy_bias(facts_of(*readings)) == ()
