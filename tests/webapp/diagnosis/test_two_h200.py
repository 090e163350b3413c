"""What the reasoning makes of what two H200 gave on 2026-11-30 (tests/agents/payloads/test_two_h200.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import Reading
from agents.facts.bench import CopyPath, CopyRow, Pattern, Timing
from agents.facts.gpu import GPUS, Gpu
from agents.facts.p2p import TOPOLOGY
from agents.facts.workload import MODEL, Model
from agents.probe import Output
from bench.aa_resampling import COMPARISONS, RESAMPLES, noise_of, rate, runs_in
from tests.webapp.diagnosis.building import facts_of, topology
from tests.webapp.diagnosis.hypothesis_cases import verdict
from tests.webapp.diagnosis.test_hypotheses_time import SEEN, SINGLE
from webapp.diagnosis.compare.copies import compare_copies
from webapp.diagnosis.compare.effects import Outcome
from webapp.diagnosis.prediction.baselines import Standing, figures
from webapp.diagnosis.prediction.step_floor import measured_bandwidth
from webapp.diagnosis.reference.machines import H200_PAIR
from webapp.diagnosis.situation.copy_curve import copy_curve
from webapp.diagnosis.situation.copy_fit import way_fits

PAYLOADS = Path(__file__).resolve().parents[2] / "agents" / "payloads"
AGAIN = Path(__file__).parent / "copy_repeats" / "two_h200_again.jsonl"
SUMS = Path(__file__).parent / "sum_repeats"
NVLINKED = (
    GPUS.known(tuple(Gpu(i, "NVIDIA H200", pcie_gen_max=5, pcie_width_max=16) for i in range(2)), lines=(1,)),
    TOPOLOGY.known(topology(2, "NV18"), lines=(1,)),
)


def read(benchmark: str, file: Path | str) -> tuple[Reading[Any], ...]:
    text = (PAYLOADS / file).read_text()
    return tuple(all_benchmarks()[benchmark].parse(Output(text)))


def value(benchmark: str, file: Path | str) -> Any:
    return read(benchmark, file)[0].value


def test_latency_bandwidth_and_knee_of_each_way() -> None:
    copies = value("bench.copy", "two_h200.jsonl")
    ways = {way.way: way for way in way_fits(copies.rows)}
    assert set(ways) == {
        *("Host to GPU 0", "GPU 0 to host", "GPU 0 to 1, by hand over the host"),
        *(f"GPU {a} to {b}, peer access {on}" for a, b in ("01", "10") for on in ("on", "off")),
        *(f"GPU 0 and 1, each of two at once, peer access {on}" for on in ("on", "off")),
    }
    assert not any(way.fit.rough for way in ways.values())
    on, off = (ways[f"GPU 0 to 1, peer access {word}"] for word in ("on", "off"))
    assert on.fit.text == "latency 2.4 µs, bandwidth 389 GB/s, knee at 912 KiB"
    assert off.fit.text == "latency 20.7 µs, bandwidth 35.6 GB/s, knee at 718 KiB"
    assert (on.note, off.note) == ("", "1 unstable size left out")


def test_the_curve_is_that_of_the_faster_way() -> None:
    curve = copy_curve(facts_of(*read("bench.copy", "two_h200.jsonl")))
    assert curve
    assert curve.device_timed
    assert curve.smallest_us == pytest.approx(2.52, abs=0.01)
    assert curve.plateau_gb_per_s == pytest.approx(388, abs=1)


def test_the_floor_takes_what_memory_gave() -> None:
    found = measured_bandwidth(facts_of(*read("bench.memory", "two_h200_memory.jsonl")))
    assert found
    assert found.gb_per_s == pytest.approx(4345.5, abs=0.1)
    assert "triad" in found.how


def test_every_figure_is_what_healthy_cards_reach() -> None:
    readings = [
        *read("bench.copy", "two_h200.jsonl"),
        *read("bench.memory", "two_h200_memory.jsonl"),
        *read("bench.allreduce", "two_h200_allreduce.jsonl"),
    ]
    found = {figure.title: figure for figure in figures(facts_of(*NVLINKED, *readings))}
    assert {title for title, figure in found.items() if figure.standing is not Standing.WITHIN} == {
        "Small copy, GPU 0 to 1, peer access off",
        "Small copy, GPU 1 to 0, peer access off",
    }
    for way in ("0 to 1", "1 to 0"):
        assert found[f"Small copy, GPU {way}, peer access off"].standing is Standing.UNSTABLE
    assert len(found) >= 13


def test_the_reference_holds_what_was_measured() -> None:
    copies = value("bench.copy", "two_h200.jsonl").rows + value("bench.copy", AGAIN).rows
    timed = [row for row in copies if row.timing is Timing.DEVICE]
    large = [row for row in timed if row.size_bytes >= 16 * 2**20]
    small = [row for row in timed if row.size_bytes == 12288]
    with_host = (CopyPath.HOST_TO_DEVICE, CopyPath.DEVICE_TO_HOST)
    assert rates(row for row in large if row.path in with_host) == H200_PAIR.with_host_gb_per_s
    for access, large_rates, small_us in (
        (True, H200_PAIR.peer_gb_per_s, H200_PAIR.peer_small_us),
        (False, H200_PAIR.over_host_gb_per_s, H200_PAIR.over_host_small_us),
    ):
        assert rates(row for row in large if is_peer(row, access)) == large_rates
        times = [round(row.time_us, 1) for row in small if is_peer(row, access)]
        assert (min(times), max(times)) == small_us
    memory = [row.gb_per_s for row in value("bench.memory", "two_h200_memory.jsonl").rows]
    assert round(max(memory), 1) == H200_PAIR.memory_gb_per_s[1]
    together = {
        row.peer_access: round(row.slowdown, 2)
        for row in value("bench.contention", "two_h200_contention.jsonl").rows
        if row.pattern is Pattern.ALL_TO_ALL and row.size_bytes == 16 * 2**20
    }
    assert (together[True], together[False]) == H200_PAIR.all_together


def is_peer(row: CopyRow, access: bool) -> bool:
    return row.path is CopyPath.PEER and row.peer_access is access


def rates(rows: Iterable[CopyRow]) -> tuple[float, float]:
    found = [round(row.size_bytes / row.time_us / 1e3, 1) for row in rows]
    return min(found), max(found)


def test_two_runs_of_the_same_copies_are_not_told_apart() -> None:
    first, again = (value("bench.copy", file) for file in ("two_h200.jsonl", AGAIN))
    assert compare_copies(first, again).outcome not in {Outcome.IMPROVED, Outcome.WORSE}


def test_launches_that_vary_are_said_to() -> None:
    launch = read("bench.launch", "two_h200_launch.jsonl")[0]
    model = MODEL.known(Model(layers=87), lines=(1,))
    claim = verdict("launch_bound", SEEN, SINGLE, launch, model).for_[-1]
    assert "takes 9.6 µs of this processor (it varies, 7.9 to 9.9)" in claim.text
    assert "0.9 µs of the GPU in a CUDA graph" in claim.text


def sums(who: str, word: str) -> dict[int, list[float]]:
    """µs of four repeats by bytes, in turns: ours, and all_reduce_perf -G 20 -n 100 (-n 20 for 16 MiB), in
    place."""
    found: dict[int, list[float]] = {}
    if who == "ours":
        text = (SUMS / f"two_h200_ours_{word}.jsonl").read_text()
        for row in map(json.loads, text.splitlines()):
            found.setdefault(row["size_bytes"], []).append(row["time_us"])
        return found
    for reading in read("bench.nccl_tests", SUMS / f"two_h200_nccl_tests_{word}.txt"):
        for line in reading.value.rows if reading.value else ():
            if line.in_place:
                found.setdefault(line.size_bytes, []).append(line.time_us)
    return found


@pytest.mark.parametrize("word", ["on", "off"])
def test_our_all_reduces_are_within_two_percent_of_nccl_tests(word: str) -> None:
    ours, theirs = sums("ours", word), sums("nccl-tests", word)
    assert sorted(ours) == sorted(theirs) == sorted(H200_PAIR.sums_p2p_us)
    for size, times in ours.items():
        assert len(times) == len(theirs[size]) == 4
        assert median(times) == pytest.approx(median(theirs[size]), rel=0.02)
        low, high = (H200_PAIR.sums_p2p_us if word == "on" else H200_PAIR.sums_shm_us)[size]
        assert (min(times), max(times)) == pytest.approx((low, high), rel=0.005)


def test_p2p_on_and_off_never_overlap() -> None:
    on, off = sums("ours", "on"), sums("ours", "off")
    assert all(max(on[size]) * 1.6 < min(off[size]) for size in on)


@pytest.mark.thorough
def test_equal_copies_are_rarely_called_different() -> None:
    """1,000 resamples of the two runs that there are; each has four ways with all sizes but the unstable."""
    runs = runs_in([PAYLOADS / "two_h200.jsonl", AGAIN])
    assert sum(len(repeats) for repeats in runs.values() if len(repeats) > 1) == 8
    noise = noise_of(runs.values())
    assert 0.005 < max(abs(off) for draw in noise.draws for off in draw.values()) < 0.05
    assert rate(COMPARISONS["copies"], noise, 0.0) <= 0.05 * RESAMPLES
    assert rate(COMPARISONS["copies"], noise, 0.10, 200) >= 198
