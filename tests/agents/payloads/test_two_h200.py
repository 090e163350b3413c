"""What two H200 gave on 2026-11-30, read by our parsers: driver 580.159.04, torch 2.11, NCCL 2.28.9.

Captured from the programs as they are shipped. Replaced: the GPUs' UUIDs, the kernel's name, settings with
paths. Of the copies' telemetry three of four looks are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts.bench import CopyPath, CopyResult, GpuTelemetry, Pattern, Timing
from agents.facts.kernels import LaunchResult, MemoryResult, Work
from agents.probe import Output

FOLDER = Path(__file__).parent
CAPTURES = {
    "bench.copy": "two_h200.jsonl",
    "bench.contention": "two_h200_contention.jsonl",
    "bench.memory": "two_h200_memory.jsonl",
    "bench.launch": "two_h200_launch.jsonl",
}
PEAK_GB_PER_S = 4800  # of the datasheet
LINK_GB_PER_S = 63  # Gen5 x16, raw


def _read(benchmark: str) -> tuple[Any, tuple[GpuTelemetry, ...]]:
    text = (FOLDER / CAPTURES[benchmark]).read_text()
    reading, telemetry = all_benchmarks()[benchmark].parse(Output(text))
    assert telemetry.value
    return reading, telemetry.value


@pytest.mark.parametrize("benchmark", CAPTURES)
def test_every_row_is_read_and_says_what_it_depends_on(benchmark: str) -> None:
    reading, _ = _read(benchmark)
    printed = (FOLDER / CAPTURES[benchmark]).read_text().count('"time_us"')
    assert len(reading.value.rows) == printed
    assert reading.complete
    environment = reading.value.environment
    assert environment["gpus"] == "NVIDIA H200, NVIDIA H200"
    assert environment["settings"].endswith("NCCL_NVLS_ENABLE=0")
    assert environment["fingerprint"]


@pytest.mark.parametrize("benchmark", CAPTURES)
def test_the_telemetry_is_that_of_cards_at_work(benchmark: str) -> None:
    first, second = _read(benchmark)[1]
    assert (first.gpu, second.gpu) == ("0", "1")
    for gpu in (first, second):
        assert (gpu.pcie_gen, gpu.pcie_width) == (5, 16)
        assert gpu.throttle_reasons == ()
        assert gpu.every_s
        assert gpu.every_s <= 0.5
    assert first.sm_clock_mhz == 1980
    assert 100 < (first.power_max_w or 0) < 700
    idle = benchmark == "bench.launch"  # it uses the first GPU alone
    assert (second.power_max_w or 0) < 100 if idle else (second.power_max_w or 0) > 100


# --- copies -------------------------------------------------------------------------------------------


def _copies() -> CopyResult:
    result = _read("bench.copy")[0].value
    assert isinstance(result, CopyResult)
    return result


def test_only_small_copies_over_the_host_have_two_modes_on_the_device() -> None:
    unstable = {(row.path, row.size_bytes) for row in _copies().rows if row.unstable and row.timing is Timing.DEVICE}
    assert unstable == {(CopyPath.PEER, 12288), (CopyPath.STAGED, 12288), (CopyPath.STAGED, 49152)}
    assert {row.peer_access for row in _copies().rows if row.unstable} == {False, None}


def test_no_copy_is_faster_than_what_carries_it() -> None:
    for row in _copies().rows:
        if row.path in (CopyPath.HOST_TO_DEVICE, CopyPath.DEVICE_TO_HOST, CopyPath.STAGED):
            assert (row.gb_per_s or 0) < LINK_GB_PER_S
        if row.path is CopyPath.PEER:
            assert (row.gb_per_s or 0) < (18 * 25 if row.peer_access else LINK_GB_PER_S)
        if row.path is CopyPath.SAME and row.size_bytes >= 64 * 2**20:  # beyond the L2
            assert 2 * (row.gb_per_s or 0) < PEAK_GB_PER_S


def test_both_ways_at_once_cost_little_over_nvlink_and_a_sixth_over_the_host() -> None:
    at_64_mib = {
        (row.path, row.peer_access): row.time_us
        for row in _copies().rows
        if row.size_bytes == 64 * 2**20 and row.source == "0" and row.timing is Timing.DEVICE
    }
    for access, least, most in ((True, 1.0, 1.03), (False, 1.1, 1.25)):
        both = at_64_mib[CopyPath.PEER_BOTH_WAYS, access] / at_64_mib[CopyPath.PEER, access]
        assert least < both < most


# --- contention ---------------------------------------------------------------------------------------


def test_copies_at_once_wait_for_each_other_only_over_the_host() -> None:
    result = _read("bench.contention")[0].value
    worst = result.slowest
    assert (worst.pattern, worst.size_bytes, worst.peer_access) == (Pattern.ALL_TO_ALL, 16 * 2**20, False)
    assert worst.slowdown == pytest.approx(1.17, abs=0.01)
    others = [row for row in result.rows if row.flows > 1 and row.peer_access is not False]
    assert len(others) == 9
    assert all(1.0 <= row.slowdown < 1.05 for row in others)


def test_the_copy_alone_did_not_move_while_the_others_were_measured() -> None:
    """Before and after the patterns; 48 KiB over the host has two modes."""
    for row in _read("bench.contention")[0].value.rows:
        if row.flows == 1 and (row.size_bytes > 49152 or row.peer_access is not False):
            assert row.slowdown == pytest.approx(1, abs=0.01)


# --- memory, launches ----------------------------------------------------------------------


def test_memory_gives_nine_tenths_of_its_peak_whatever_streams() -> None:
    result = _read("bench.memory")[0].value
    assert isinstance(result, MemoryResult)
    rates = [row.gb_per_s for row in result.rows if row.figures.timing is Timing.DEVICE]
    assert len(rates) == 6
    assert all(row.beyond_l2 for row in result.rows)
    assert 4160 < min(rates) < max(rates) < 4350 < PEAK_GB_PER_S


def test_a_graph_starts_a_kernel_for_a_tenth_of_what_the_processor_takes() -> None:
    result = _read("bench.launch")[0].value
    assert isinstance(result, LaunchResult)
    graph, queued, started, waited = (
        result.time_us(Work.KERNEL, method) or 0.0 for method in ("graph", "queued", "no_wait", "call")
    )
    assert 0.4 < graph < queued < started < waited
    assert started / graph > 9
    operation = result.figures(Work.OPERATION, "no_wait")
    assert operation
    assert operation.unstable


def test_products_of_few_tokens_take_as_long_as_reading_their_weights() -> None:
    """Grouped ones read faster than any streaming kernel: up to 63 MB of 805 may come from the L2."""
    rows = [row for row in _read("bench.launch")[0].value.rows if row.figures.method == "graph"]
    grouped = [row for row in rows if row.what is Work.GROUPED_GEMM]
    assert [row.batch for row in grouped] == [1, 2, 4, 8, 16, 32, 64]
    assert all(row.beyond_l2 and 3900 < (row.gb_per_s or 0) < PEAK_GB_PER_S for row in grouped)
    dense = [row.figures.time_us for row in rows if row.what is Work.GEMM]
    assert max(dense) < 1.06 * min(dense)  # 1 to 64 tokens
