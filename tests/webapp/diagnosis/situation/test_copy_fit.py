"""Latency, bandwidth and knee of a copy curve."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from webapp.diagnosis.situation.copy_fit import CopyFit, copy_fit

KIB = 1024
LADDER = tuple(size * KIB for size in (12, 48, 192, 768, 4096, 16384, 65536))
# Two H200 over NVLink, peer access on and off, driver 580.159: cudaMemcpyPeerAsync, queued.
ON = ((12, 3.39), (48, 3.21), (192, 3.28), (768, 4.0), (4096, 12.93), (16384, 45.86))
OFF = ((12, 18.88), (48, 19.6), (192, 25.48), (768, 46.29), (4096, 136.15), (16384, 453.03))

latencies = st.floats(0.5, 100)
bandwidths = st.floats(1, 900)


def _line(latency_us: float, gb_per_s: float) -> list[tuple[int, float]]:
    return [(size, latency_us + size / gb_per_s / 1e3) for size in LADDER]


def _fit(points: list[tuple[int, float]]) -> CopyFit:
    found = copy_fit(points)
    assert found
    return found


@given(latencies, bandwidths)
def test_a_line_is_found_again(latency_us: float, gb_per_s: float) -> None:
    fit = _fit(_line(latency_us, gb_per_s))
    assert fit.latency_us == pytest.approx(latency_us, rel=1e-4)
    assert fit.bandwidth_gb_per_s == pytest.approx(gb_per_s, rel=1e-4)
    assert fit.largest_residual < 1e-6
    assert fit.time_us(fit.knee_bytes) == pytest.approx(2 * latency_us, rel=1e-4)


@given(latencies, bandwidths, st.lists(st.floats(0.8, 1.25), min_size=7, max_size=7))
def test_no_line_nearby_is_closer(latency_us: float, gb_per_s: float, noise: list[float]) -> None:
    points = [(s, t * n) for (s, t), n in zip(_line(latency_us, gb_per_s), noise, strict=True)]
    fit = _fit(points)

    def off(latency: float, rate: float) -> float:
        return sum(((latency + s / rate / 1e3) / t - 1) ** 2 for s, t in points)

    best = off(fit.latency_us, fit.bandwidth_gb_per_s)
    for a in (0.99, 1, 1.01):
        for b in (0.99, 1, 1.01):
            assert best <= off(fit.latency_us * a, fit.bandwidth_gb_per_s * b) + 1e-9


@given(latencies, bandwidths, st.floats(0.01, 100), st.lists(st.floats(0.8, 1.25), min_size=7, max_size=7))
def test_a_machine_so_many_times_slower_has_the_same_knee(
    latency_us: float, gb_per_s: float, times: float, noise: list[float]
) -> None:
    points = [(s, t * n) for (s, t), n in zip(_line(latency_us, gb_per_s), noise, strict=True)]
    one, other = _fit(points), _fit([(s, t * times) for s, t in points])
    assume(one.latency_us > 0.01)
    assert other.latency_us == pytest.approx(one.latency_us * times, rel=1e-6)
    assert other.knee_bytes == pytest.approx(one.knee_bytes, rel=1e-6)


@given(st.lists(st.tuples(st.integers(1, 2**34), st.floats(1e-3, 1e7)), max_size=12))
def test_whatever_was_measured_its_figures_are_figures(points: list[tuple[int, float]]) -> None:
    fit = copy_fit(points)
    if fit:
        assert fit.latency_us >= 0
        assert 0 < fit.bandwidth_gb_per_s < math.inf
        assert len(fit.residuals) == len(points)


@pytest.mark.parametrize(("curve", "latency_us", "gb_per_s"), [(ON, (2.5, 3.5), (366, 450)), (OFF, (17, 22), (35, 42))])
def test_what_two_gpus_gave(
    curve: tuple[tuple[int, float], ...], latency_us: tuple[float, float], gb_per_s: tuple[float, float]
) -> None:
    fit = _fit([(kib * KIB, us) for kib, us in curve])
    assert latency_us[0] < fit.latency_us < latency_us[1]
    assert gb_per_s[0] < fit.bandwidth_gb_per_s < gb_per_s[1]


def test_two_sizes_or_close_ones_are_no_curve() -> None:
    assert copy_fit([(1000, 1.0), (100_000, 2.0)]) is None
    assert copy_fit([(1000, 1.0), (2000, 2.0), (4000, 3.0)]) is None
    assert copy_fit([(1000, 9.0), (10_000, 3.0), (100_000, 0.1)]) is None
    assert copy_fit([]) is None


def test_its_text_says_the_three_figures_and_whether_to_trust_them() -> None:
    good = _fit(_line(3.0, 100.0))
    assert good.text == "latency 3 µs, bandwidth 100 GB/s, knee at 293 KiB"
    bent = _fit([(12 * KIB, 3.0), (768 * KIB, 30.0), (4096 * KIB, 31.0), (16384 * KIB, 200.0)])
    assert bent.rough
    assert "rough" in bent.text
