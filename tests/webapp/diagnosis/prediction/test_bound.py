"""The arithmetic of a step: never negative, never a gain below 1, and the truth inside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agents.facts import Reading
from agents.facts.bench import ALLREDUCE, COPY, AllReduceResult, AllReduceRow, CopyPath, CopyResult, CopyRow, Timing
from agents.facts.gpu import GPUS, Gpu
from agents.facts.kernels import MEMORY, Figures, MemoryResult, MemoryRow
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.workload import GOAL, MODEL, OBSERVED, PARALLELISM, Goal, Model, Observed, Parallelism
from webapp.diagnosis.case import Bound
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.prediction.bound import TOO_LOOSE, bounds
from webapp.diagnosis.prediction.step_floor import bytes_read
from webapp.diagnosis.situation import Situation

KIB = 1024
MODEL_8 = Model(
    layers=78,
    hidden_size=6144,
    activation_bytes=2,
    active_weight_bytes=(23.2e9, 72e9),
    weight_bytes=(410e9, 440e9),
    experts=256,
    experts_active=8,
)
CARD = "NVIDIA RTX PRO 6000 Blackwell Server Edition"


def copies(*rows: tuple[int, float], timing: Timing = Timing.HOST_SYNC) -> CopyResult:
    return CopyResult(tuple(CopyRow(CopyPath.PEER, "0", "1", size, time, timing) for size, time in rows))


def facts(*readings: Reading[Any]) -> Facts:
    return Facts.of(Sourced(reading, "test") for reading in readings)


def readings(
    tokens_per_s: float, concurrency: int = 1, model: Model = MODEL_8, tp: int = 8, curve: CopyResult | None = None
) -> list[Reading[Any]]:
    found: list[Reading[Any]] = [
        MODEL.known(model),
        PARALLELISM.known(Parallelism(tp=tp)),
        OBSERVED.known((Observed(concurrency, (tokens_per_s, tokens_per_s)),)),
        GPUS.known(tuple(Gpu(i, CARD) for i in range(tp))),
    ]
    return found + ([COPY.known(curve)] if curve else [])


def only(*more: Reading[Any], base: list[Reading[Any]]) -> Bound:
    (found,) = bounds(Situation(facts(*base, *more)))
    return found


SLOW = copies((12 * KIB, 13.7), (768 * KIB, 41.4))


@settings(max_examples=60)
@given(
    tokens_per_s=st.floats(0.1, 5000),
    concurrency=st.integers(1, 512),
    tp=st.integers(1, 16),
    small_us=st.floats(0.5, 200),
    growth=st.floats(1, 100),
    draft=st.integers(0, 4),
)
def test_nothing_is_negative_and_no_gain_is_below_one(
    tokens_per_s: float, concurrency: int, tp: int, small_us: float, growth: float, draft: int
) -> None:
    curve = copies((12 * KIB, small_us), (16 * KIB * KIB, small_us * growth))
    model = replace(MODEL_8, draft_tokens=draft)
    found = only(base=readings(tokens_per_s, concurrency, model, tp, curve))
    for span in (found.step_ms, found.floor_ms, found.comm_ms, found.unexplained_ms):
        assert span
        assert 0 <= span[0] <= span[1]
    for gain in (found.max_gain_remove_comm, found.max_gain_p2p):
        assert gain is None or 1 <= gain[0] <= gain[1]
    if found.max_gain_remove_comm and found.max_gain_p2p:
        assert found.max_gain_p2p[1] <= found.max_gain_remove_comm[1] * (1 + 1e-9)


@settings(max_examples=60)
@given(read_gb=st.floats(3, 8.9), reduce_us=st.floats(20, 150), other_ms=st.floats(0, 100), tp=st.sampled_from([4, 8]))
def test_a_simulated_step_lies_inside(read_gb: float, reduce_us: float, other_ms: float, tp: int) -> None:
    """A step made of reads, 156 all-reduces between one copy and a ring of copies, and a rest."""
    assume(13.7 <= reduce_us <= 2 * (tp - 1) * 13.7)
    floor_ms, comm_ms = read_gb * 8 / tp / 1612.8 * 1e3, 156 * reduce_us / 1e3
    step_ms = floor_ms + comm_ms + other_ms
    found = only(base=readings(1e3 / step_ms, tp=tp, curve=SLOW))
    inside = (
        (found.step_ms, step_ms),
        (found.floor_ms, floor_ms),
        (found.comm_ms, comm_ms),
        (found.unexplained_ms, other_ms),
        (found.max_gain_remove_comm, step_ms / (step_ms - comm_ms)),
    )
    for span, truth in inside:
        assert span
        assert span[0] <= truth * (1 + 1e-6) + 1e-9
        assert span[1] >= truth * (1 - 1e-6)


@settings(max_examples=40)
@given(small_us=st.floats(1, 30), more=st.floats(1, 3), tokens_per_s=st.floats(1, 30))
def test_slower_copies_and_a_shorter_step_raise_what_communication_could_be(
    small_us: float, more: float, tokens_per_s: float
) -> None:
    def gain(us: float, rate: float) -> tuple[float, bool]:
        curve = copies((12 * KIB, us), (16 * KIB * KIB, 400.0))
        found = only(base=readings(rate, curve=curve))
        assert found.max_gain_remove_comm
        return found.max_gain_remove_comm[1], TOO_LOOSE in found.assumes

    here, _ = gain(small_us, tokens_per_s)
    assert here <= gain(small_us * more, tokens_per_s)[0] * (1 + 1e-9)
    shorter, cut = gain(small_us, tokens_per_s * more)
    # Once the estimate is cut at what the step leaves, a shorter step leaves less.
    assert cut or here <= shorter * (1 + 1e-9)


def test_an_estimate_that_the_step_cannot_hold_is_cut_and_says_so() -> None:
    found = only(base=readings(200, curve=copies((12 * KIB, 100.0))))
    assert TOO_LOOSE in found.assumes
    assert found.comm_ms
    assert found.step_ms
    assert found.floor_ms
    assert found.comm_ms[1] == pytest.approx(found.step_ms[1] - found.floor_ms[0])


def test_a_batch_touches_more_experts() -> None:
    one, many = bytes_read(MODEL_8, 1), bytes_read(MODEL_8, 64)
    assert one == (23.2e9, 72e9)
    assert many
    assert many[0] / 8 == pytest.approx(44.7e9, rel=0.01)
    assert many[1] / 8 == pytest.approx(48.8e9, rel=0.01)
    dense = replace(MODEL_8, experts=None, experts_active=None)
    assert bytes_read(dense, 64) == (23.2e9, 72e9)


def test_draft_tokens_make_messages_larger_and_an_unknown_acceptance_a_range() -> None:
    plain = only(base=readings(50, 64, curve=copies((12 * KIB, 5.0), (16 * KIB * KIB, 400.0))))
    model = replace(MODEL_8, draft_tokens=3)
    curve = copies((12 * KIB, 5.0), (16 * KIB * KIB, 400.0))
    drafted = only(base=readings(50, 64, model, curve=curve))
    assert plain.step_ms
    assert drafted.step_ms == (plain.step_ms[0], plain.step_ms[1] * 4)
    assert plain.comm_ms
    assert drafted.comm_ms
    assert drafted.comm_ms[1] > plain.comm_ms[1]


def test_a_graph_timed_all_reduce_takes_the_place_of_the_estimate() -> None:
    rows = (AllReduceRow(12 * KIB, 60.0, 8), AllReduceRow(24 * KIB, 62.0, 8))
    result = AllReduceResult(rows, p2p=False, timing=Timing.DEVICE)
    eager = replace(result, timing=Timing.HOST_SYNC)
    base = readings(11, curve=SLOW)
    found = only(ALLREDUCE.known(result), base=base)
    assert found.comm_ms == pytest.approx((9.36, 9.36))
    assert found.basis["comm_ms"] is Basis.MEASURED
    assert only(ALLREDUCE.known(eager), base=base).basis["comm_ms"] is Basis.ESTIMATED


# --- the interval of a measured all-reduce ------------------------------------------------------------


def all_reduces(*rows: AllReduceRow, p2p: bool = False) -> Reading[Any]:
    return ALLREDUCE.known(AllReduceResult(rows, p2p=p2p, timing=Timing.DEVICE))


def timed(size: int, us: float, low: float | None, high: float | None, **more: Any) -> AllReduceRow:
    return AllReduceRow(size, us, 8, ci_low_us=low, ci_high_us=high, **more)


def test_the_ends_of_an_interval_are_the_ends_of_the_range() -> None:
    found = only(all_reduces(timed(12 * KIB, 12.9, 12.7, 13.1)), base=readings(11, curve=SLOW))
    assert found.comm_ms == pytest.approx((156 * 12.7 / 1e3, 156 * 13.1 / 1e3))
    assert found.basis["comm_ms"] is Basis.MEASURED
    said = "an all-reduce as measured here: median 12.90 µs, 95 % interval 12.70–13.10"
    assert said in found.assumes
    assert sum("Efron and Tibshirani 1993" in text for text in found.assumes) == 1


def test_in_place_and_out_of_place_are_both_inside() -> None:
    rows = timed(12 * KIB, 12.9, 12.7, 13.1), timed(12 * KIB, 13.4, 13.0, 13.9, in_place=True)
    found = only(all_reduces(*rows), base=readings(11))
    assert found.comm_ms == pytest.approx((156 * 12.7 / 1e3, 156 * 13.9 / 1e3))
    said = "an all-reduce as measured here: medians 12.90–13.40 µs, 95 % intervals 12.70–13.90"
    assert said in found.assumes


def test_p2p_that_was_measured_has_its_interval_too() -> None:
    over = all_reduces(timed(12 * KIB, 8.0, 7.0, 9.0), p2p=True)
    found = only(over, base=readings(11, curve=SLOW))
    said = "all-reduces over P2P as measured here: median 8.00 µs, 95 % interval 7.00–9.00"
    assert said in found.assumes
    assert found.basis["comm_ms"] is Basis.ESTIMATED


def test_without_an_interval_nothing_is_said_of_one() -> None:
    over = all_reduces(timed(12 * KIB, 8.0, None, None), p2p=True)
    found = only(all_reduces(timed(12 * KIB, 60.0, None, None)), over, base=readings(11))
    assert found.comm_ms == pytest.approx((9.36, 9.36))
    assert "all-reduces over P2P as measured here" in found.assumes
    assert not any("interval" in text for text in found.assumes)


@pytest.mark.parametrize("ends", [(0.0, 60.0), (-5.0, -1.0), (60.0, None), (61.0, 59.0), (70.0, 80.0)])
def test_an_interval_never_narrows_or_moves_the_range(ends: tuple[float, float | None]) -> None:
    found = only(all_reduces(timed(12 * KIB, 60.0, *ends)), base=readings(11))
    assert found.comm_ms
    assert 0 < found.comm_ms[0] <= 9.36 <= found.comm_ms[1]


@settings(max_examples=60)
@given(
    tokens_per_s=st.floats(0.5, 200),
    slow_us=st.lists(st.floats(1, 500), min_size=2, max_size=2),
    fast_us=st.lists(st.floats(1, 500), min_size=2, max_size=2),
    below=st.floats(0, 1),
    above=st.floats(0, 2),
    sizes=st.sampled_from([(12 * KIB, 48 * KIB), (4 * KIB, 48 * KIB), (16 * KIB, 48 * KIB)]),
)
def test_every_range_with_intervals_holds_the_range_without(
    tokens_per_s: float, slow_us: list[float], fast_us: list[float], below: float, above: float, sizes: tuple[int, int]
) -> None:
    def bound(*, ends: bool) -> Bound:
        def arm(times: list[float], *, p2p: bool) -> Reading[Any]:
            low, high = (1 - below, 1 + above) if ends else (None, None)
            return all_reduces(
                *(timed(size, us, low and us * low, high and us * high) for size, us in zip(sizes, times, strict=True)),
                p2p=p2p,
            )

        base = readings(tokens_per_s)
        return only(arm(slow_us, p2p=False), arm(fast_us, p2p=True), base=base)

    bare, wide = bound(ends=False), bound(ends=True)
    for name in ("comm_ms", "unexplained_ms", "max_gain_remove_comm", "max_gain_p2p"):
        inner, outer = getattr(bare, name), getattr(wide, name)
        assert outer[0] <= inner[0] * (1 + 1e-9), name
        assert outer[1] >= inner[1] * (1 - 1e-9), name


def test_a_measured_plateau_takes_the_place_of_the_published_one() -> None:
    base = readings(11, 64, curve=copies((12 * KIB, 13.7), (16 * KIB * KIB, 1677.7)))
    found = only(base=base)
    assert found.comm_ms
    ring_us = 14 * 13.7 + 1.75 * 64 * 12288 / 10e3
    assert found.comm_ms[1] == pytest.approx(156 * ring_us / 1e3, rel=0.01)
    assert not any("public P2P-off" in text for text in found.assumes)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (PARALLELISM.known(Parallelism(tp=8, dp_attention=True)), "DP attention"),
        (PARALLELISM.known(Parallelism(tp=8, ep=8)), "expert parallel"),
        (NCCL_TRANSPORTS.known(NcclTransports(net=16)), "NET transport"),
        (MODEL.known(replace(MODEL_8, layers=None)), "layers"),
        (MODEL.known(replace(MODEL_8, hidden_size=None)), "hidden_size"),
    ],
)
def test_what_the_arithmetic_does_not_hold_for_is_refused_by_name(change: Reading[Any], named: str) -> None:
    base = [r for r in readings(11, curve=SLOW) if r.fact_id != change.fact_id]
    found = only(change, base=base)
    assert found.comm_ms is None
    assert found.max_gain_remove_comm is None
    assert any(named in missing for missing in found.missing)


def test_total_throughput_is_not_taken_for_output() -> None:
    observed = OBSERVED.known((Observed(64, None, (485.0, 485.0)),))
    base = [r for r in readings(11, curve=SLOW) if r.fact_id != OBSERVED.id]
    found = only(observed, base=base)
    assert found.step_ms is None
    assert found.max_gain_p2p is None
    assert any("counts input" in missing for missing in found.missing)


def test_the_transport_is_presumed_until_a_log_shows_it() -> None:
    base = readings(11, curve=SLOW)
    presumed = "presumes shared memory or better until the NCCL log was seen"
    assert presumed in only(base=base).assumes
    seen = NCCL_TRANSPORTS.known(NcclTransports(shm=16))
    assert presumed not in only(seen, base=base).assumes
    p2p = NCCL_TRANSPORTS.known(NcclTransports(p2p=16))
    assert only(p2p, base=base).max_gain_p2p == (1.0, 1.0)


@pytest.mark.parametrize(("wanted", "reachable"), [(5, True), (12, None), (100, False)])
def test_a_goal_is_reachable_unreachable_or_not_known(wanted: float, reachable: bool | None) -> None:
    goal = GOAL.known(Goal(single_stream_tokens_per_s=wanted))
    assert only(goal, base=readings(11, curve=SLOW)).goal_reachable_by_p2p is reachable


def test_one_gpu_makes_no_communication() -> None:
    found = only(base=readings(11, tp=1))
    assert found.comm_ms == (0.0, 0.0)
    assert found.max_gain_remove_comm == (1.0, 1.0)


def test_an_unknown_gpu_leaves_the_floor_unknown_and_says_so() -> None:
    base = [r for r in readings(11, curve=SLOW) if r.fact_id != GPUS.id]
    found = only(GPUS.known((Gpu(0, "Some other GPU"),)), base=base)
    assert found.floor_ms is None
    assert found.unexplained_ms is None
    assert any("memory bandwidth" in missing for missing in found.missing)


# --- memory that was measured -------------------------------------------------------------------------


def memory(rate: float, *, l2_mib: int = 60, unstable: bool = False) -> Reading[Any]:
    size = 512 * 2**20
    figures = Figures(size / rate / 1e3, Timing.DEVICE, "queued", unstable=unstable)
    row = MemoryRow("0", "read", size, size, l2_mib * 2**20, rate, figures)
    return MEMORY.known(MemoryResult((row,)), lines=(7,))


def test_measured_memory_makes_the_floor() -> None:
    found = only(memory(1500.0), base=readings(11))
    assert found.floor_ms == pytest.approx((23.2 / 8 / 1500 * 1e3, 72 / 8 / 1500 * 1e3))
    assert found.basis["floor_ms"] is Basis.ESTIMATED
    assert any("read kernel" in text and "1500 GB/s" in text for text in found.assumes)


@pytest.mark.parametrize(
    "doubtful",
    [memory(9999.0, l2_mib=200), memory(9999.0, l2_mib=0), memory(9999.0, unstable=True)],
    ids=["served by the L2", "no L2 told", "unstable"],
)
def test_memory_that_may_not_have_been_measured_leaves_the_specification(doubtful: Reading[Any]) -> None:
    found = only(doubtful, base=readings(11))
    assert found.basis["floor_ms"] is Basis.LITERATURE
    assert found.floor_ms == only(base=readings(11)).floor_ms


def test_memory_counts_before_a_copy_that_was_large_enough() -> None:
    size = 1024 * 2**20
    row = CopyRow(CopyPath.SAME, "0", "0", size, 2 * size / 1400 / 1e3, Timing.DEVICE)
    copied = COPY.known(CopyResult((row,)))
    with_copy = only(copied, base=readings(11))
    assert any("1400 GB/s" in text for text in with_copy.assumes)
    both = only(copied, memory(1500.0), base=readings(11))
    assert any("1500 GB/s" in text for text in both.assumes)


def test_a_copy_in_the_memory_of_the_cpu_says_nothing_of_a_gpu() -> None:
    size = 1024 * 2**20
    row = CopyRow(CopyPath.SAME, "cpu", "cpu", size, size / 20 / 1e3, Timing.DEVICE)
    found = only(COPY.known(CopyResult((row,))), base=readings(11))
    assert found.basis["floor_ms"] is Basis.LITERATURE
