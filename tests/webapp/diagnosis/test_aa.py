"""Equal runs are called different in at most one of twenty comparisons; real differences by their name.

The noise is that of repeated runs on two H200 (nccl-tests 2.19.6, -G 20, P2P on and off, NCCL 2.28.9, driver
580.159). Their rows are captured; the lines above each table are written as the tool prints them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.benchmark import all_benchmarks
from agents.facts.bench import AllReduceResult
from agents.probe import Output
from bench.aa_resampling import COMPARISONS, RESAMPLES, Noise, noise_of, rate, runs_in
from webapp.diagnosis.compare.allreduces import compare_allreduces
from webapp.diagnosis.compare.calibration import wilson
from webapp.diagnosis.compare.effects import Outcome

pytestmark = pytest.mark.thorough  # thousands of comparisons

REPEATS = Path(__file__).parent / "repeats"


@pytest.fixture(scope="module")
def noise() -> Noise:
    return noise_of(runs_in(sorted(REPEATS.iterdir())).values())


def test_the_noise_is_that_of_real_runs(noise: Noise) -> None:
    assert sorted(noise.typical) == [12288, 49152, 196608, 786432, 3145728, 12582912]
    assert len(noise.draws) == 8
    assert 0.005 < max(abs(off) for draw in noise.draws for off in draw.values()) < 0.05


FEWER = {"serving", "A/B in turns", "A/B drifting"}  # the arithmetic of the others


@pytest.mark.parametrize("name", COMPARISONS)
def test_equal_runs_are_rarely_called_different(noise: Noise, name: str) -> None:
    resamples = 200 if name in FEWER else RESAMPLES
    assert rate(COMPARISONS[name], noise, 0.0, resamples) <= 0.05 * resamples


@pytest.mark.parametrize("name", ["all-reduces", "serving", "A/B in turns"])
def test_a_tenth_is_seen(noise: Noise, name: str) -> None:
    assert rate(COMPARISONS[name], noise, 0.10, 100) >= 98


def test_the_interval_of_a_rate_is_wilsons() -> None:
    """Wilson's for 10 of 100, as in Newcombe 1998: 5.5 % to 17.4 %."""
    assert wilson(10, 100) == pytest.approx((0.0552, 0.1744), abs=5e-4)
    assert wilson(0, 1000)[0] == 0


def test_p2p_on_and_off_are_told_apart_at_12_kib() -> None:
    off, on = (_runs(name) for name in ("off", "on"))
    found = compare_allreduces(off[0], on[0], more_before=off[1:], more_after=on[1:])
    assert found.outcome is Outcome.IMPROVED
    small = [effect for effect in found.effects if effect.size_bytes == 12288]
    assert small
    assert all(effect.low and effect.low > 1.6 for effect in small)
    times = [[_us(run) for run in runs] for runs in (off, on)]
    assert min(times[0]) > 1.6 * max(times[1])


def _runs(which: str) -> list[AllReduceResult]:
    text = (REPEATS / f"two_h200_nccl_tests_{which}.txt").read_text()
    read = all_benchmarks()["bench.nccl_tests"].parse(Output(text))
    return [item.value for item in read if isinstance(item.value, AllReduceResult)]


def _us(run: AllReduceResult) -> float:
    return next(row.time_us for row in run.rows if row.in_place and row.size_bytes == 12288)
