"""What runs before and after a change can tell."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts.bench import CopyPath, CopyResult, CopyRow, RejectedRow, ServingRow, Timing
from agents.facts.host import HOST_CMDLINE
from agents.facts.p2p import P2P_READ, P2pCode, P2pMatrix
from agents.facts.vm import VM_ARGS, VM_CLIQUE
from webapp.diagnosis.compare.copies import compare_copies
from webapp.diagnosis.compare.effects import Comparison, Outcome, minimum_detectable
from webapp.diagnosis.compare.p2p_status import p2p_status
from webapp.diagnosis.compare.serving import by_rung, rung
from webapp.diagnosis.facts import Facts, Sourced

SIZES = {12288: 13.7, 49152: 14.2, 196608: 21.6, 786432: 41.4}


def run(factor: float = 1.0, noise: float = 0.0, seed: int = 0) -> CopyResult:
    chance = random.Random(seed)
    return CopyResult(
        tuple(
            CopyRow(CopyPath.PEER, "0", "1", size, us * factor * math.exp(chance.gauss(0, noise)))
            for size, us in SIZES.items()
        )
    )


def compared(factor: float, noise: float, runs: int = 5, seed: int = 0, change: float = 1.0) -> Comparison:
    before = [run(factor, noise, seed + i) for i in range(runs)]
    after = [run(factor * change, noise, seed + 1000 + i) for i in range(runs)]
    return compare_copies(before[0], after[0], more_before=before[1:], more_after=after[1:])


def test_one_run_each_cannot_tell_and_excludes_a_doubling() -> None:
    found = compare_copies(run(), run(0.96))
    assert found.outcome is Outcome.CANNOT_TELL
    assert found.runs == (1, 1)
    assert found.excluded == "a change of 2 × is excluded"
    assert found.effects[0].speedup == pytest.approx(1 / 0.96)
    assert found.effects[0].minimum_detectable is None


def test_one_run_each_excludes_nothing_when_the_figures_are_far_apart() -> None:
    found = compare_copies(run(), run(0.3))
    assert found.outcome is Outcome.CANNOT_TELL
    assert found.excluded == ""


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), change=st.sampled_from([0.5, 0.7, 1.5, 2.0]))
def test_a_large_change_is_seen_in_its_direction(seed: int, change: float) -> None:
    found = compared(1.0, 0.02, seed=seed, change=change)
    assert found.outcome is (Outcome.IMPROVED if change < 1 else Outcome.WORSE)
    assert all(e.low and e.high and e.low <= e.speedup <= e.high for e in found.effects)


@pytest.mark.parametrize("noise", [0.002, 0.02, 0.2])
def test_no_change_is_called_a_change_in_at_most_one_comparison_of_twenty(noise: float) -> None:
    """Four sizes with noise of their own, which is harder than what machines do to all at once."""
    outcomes = [compared(1.0, noise, seed=5000 * i).outcome for i in range(300)]
    called = sum(o in {Outcome.IMPROVED, Outcome.WORSE} for o in outcomes)
    assert called <= 0.05 * 300


def test_sizes_that_gain_and_sizes_that_lose_cannot_be_told_as_one() -> None:
    def changed(factors: tuple[float, float]) -> list[CopyResult]:
        return [
            CopyResult(
                tuple(
                    replace(row, time_us=row.time_us * factors[i % 2]) for i, row in enumerate(run(1, 0.004, seed).rows)
                )
            )
            for seed in range(5)
        ]

    before, mixed, some = changed((1, 1)), changed((0.7, 1.4)), changed((0.7, 1))
    found = compare_copies(before[0], mixed[0], more_before=before[1:], more_after=mixed[1:])
    assert (found.outcome, "slower at 2" in found.why) == (Outcome.CANNOT_TELL, True)
    found = compare_copies(before[0], some[0], more_before=before[1:], more_after=some[1:])
    assert (found.outcome, found.why) == (Outcome.IMPROVED, "faster at 2 of 4 asked together, beyond chance")


def test_it_says_how_many_runs_would_tell() -> None:
    found = compared(1.0, 0.03, runs=3)
    assert found.outcome is Outcome.CANNOT_TELL
    assert found.runs_needed
    again = compared(1.0, 0.03, runs=2 * found.runs_needed, change=0.9, seed=77)
    assert again.outcome is Outcome.IMPROVED
    assert compared(1.0, 0.03, runs=1).runs_needed is None


def test_quiet_runs_without_a_change_are_equivalent() -> None:
    assert compared(1.0, 0.005).outcome is Outcome.EQUIVALENT


def test_more_runs_detect_smaller_changes() -> None:
    assert minimum_detectable(0.03, 1) is None
    five, ten = minimum_detectable(0.03, 5), minimum_detectable(0.03, 10)
    assert five
    assert ten
    assert ten < five
    assert five == pytest.approx(0.063, abs=0.01)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), change=st.floats(0.5, 2))
def test_the_other_way_round_is_the_inverse(seed: int, change: float) -> None:
    one = compare_copies(run(1, 0.05, seed), run(change, 0.05, seed + 1))
    other = compare_copies(run(change, 0.05, seed + 1), run(1, 0.05, seed))
    for a, b in zip(one.effects, other.effects, strict=True):
        assert a.speedup == pytest.approx(1 / b.speedup)


def test_device_timed_and_synchronised_runs_are_not_compared() -> None:
    row = CopyRow(CopyPath.PEER, "0", "1", 12288, 3.0, Timing.DEVICE)
    found = compare_copies(run(), CopyResult((row,)))
    assert not found.comparable
    assert found.outcome is Outcome.CANNOT_TELL
    assert found.excluded == ""


def test_no_common_size_cannot_tell() -> None:
    row = CopyRow(CopyPath.PEER, "0", "1", 4096, 3.0)
    found = compare_copies(run(), CopyResult((row,)))
    assert not found.comparable
    assert found.effects == ()


def test_rejected_rows_are_left_out_and_named_and_widen_the_spread() -> None:
    doubtful = RejectedRow(5, "12 KB 0.80 GB/s 9.9 us", 1.24, 0.80)
    second = CopyResult(run(1.01).rows, (doubtful,))
    found = compare_copies(run(), run(), more_after=[second])
    assert found.left_out == (doubtful,)
    assert found.spread == pytest.approx(12288 / 0.80 / 1e3 / 13.7 - 1)


def matrix(code: P2pCode) -> P2pMatrix:
    return P2pMatrix(("GPU0", "GPU1"), ((None, code), (code, None)))


def epochs(after: P2pCode, *, clique: bool) -> Facts:
    items = [
        Sourced(P2P_READ.known(matrix(P2pCode.NS)), "a", 0),
        Sourced(P2P_READ.known(matrix(after)), "b", 1),
        Sourced(HOST_CMDLINE.known("quiet"), "c", 0),
        Sourced(HOST_CMDLINE.known("quiet iommu=pt"), "d", 1),
    ]
    if clique:
        items.append(Sourced(VM_CLIQUE.known({"hostpci0": 0, "hostpci1": 0}), "e", 1))
    return Facts.of(items)


@pytest.mark.parametrize(
    ("after", "clique", "predicted", "held"),
    [
        (P2pCode.NS, False, "unchanged", True),
        (P2pCode.OK, False, "unchanged", False),
        (P2pCode.OK, True, "OK", True),
        (P2pCode.NS, True, "OK", False),
    ],
)
def test_a_prediction_holds_or_does_not(after: P2pCode, clique: bool, predicted: str, held: bool) -> None:
    found = p2p_status(epochs(after, clique=clique))
    assert found
    assert (found.predicted, found.held) == (predicted, held)
    assert "iommu=pt" in found.changes


def test_without_a_second_reading_there_is_no_change() -> None:
    assert p2p_status(Facts.of([Sourced(P2P_READ.known(matrix(P2pCode.NS)), "a", 0)])) is None


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [(None, "-cpu host,kvm=off", True), ("-smp 8", "-smp 8", False), ("-smp 8", None, False), (None, None, False)],
)
def test_arguments_that_a_vm_got_are_a_change(before: str | None, after: str | None, named: bool) -> None:
    items = [Sourced(P2P_READ.known(matrix(P2pCode.NS)), "ab"[epoch], epoch) for epoch in (0, 1)]
    items += [Sourced(VM_ARGS.known(text), f"args{epoch}", epoch) for epoch, text in enumerate((before, after)) if text]
    if before and not after:
        items.append(Sourced(VM_ARGS.absent("no args"), "none", 1))
    status = p2p_status(Facts.of(items))
    assert status
    assert ("args" in status.changes) is named


def test_a_rung_whose_requests_failed_is_not_compared() -> None:
    rows = (ServingRow(1, 50.0, requests=20), ServingRow(4, 90.0, requests=20, errors=2), ServingRow(8, 100.0))
    figures = by_rung(rows, lambda row: row.output_tokens_per_s)
    assert figures == {(rung(1), 0): 50.0, (rung(8), 0): 100.0}
