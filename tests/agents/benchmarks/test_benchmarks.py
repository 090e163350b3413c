"""Every benchmark: what it reads of well-formed, cut and hostile output."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.benchmark import all_benchmarks
from agents.facts import ReadingKind
from agents.facts.bench import CopyPath, Timing
from agents.framing import clean
from agents.parsing import copy_table
from agents.probe import Output
from tests.corpus import CORPUS, MEASUREMENTS, needs_corpus

pytestmark = pytest.mark.thorough

BENCHMARKS = all_benchmarks()
SETUP = "# nThread 1 nGpus 4 minBytes 8192 maxBytes 8192 step: 2(factor) warmup iters: 5 iters: 20"
SIDE = "  time   algbw   busbw #wrong"
TABLE = f"""\
{SETUP} agg iters: 1 validation: 1 graph: {{graph}}
#       size         count      type   redop    root   {SIDE}   {SIDE}
   8192   2048   float   sum   -1    21.50    0.38    0.57      0  20.1  0.41  0.61  {{wrong}}
# Out of bounds values : 0 OK
"""


def _read(benchmark_id: str, output: Output) -> tuple[Any, ...]:
    """The readings, whose values each test knows the type of."""
    return BENCHMARKS[benchmark_id].parse(output)


def test_ids_follow_the_file_names() -> None:
    assert set(BENCHMARKS) >= {
        "bench.copy",
        "bench.copy_table",
        "bench.nccl_tests",
        "bench.p2p_bandwidth_latency",
        "bench.serving",
    }


def test_the_program_to_ship_is_there() -> None:
    for benchmark in BENCHMARKS.values():
        if benchmark.payload:
            shipped = benchmark.payload_source()
            assert shipped == benchmark.payload_source()
            with zipfile.ZipFile(io.BytesIO(shipped)) as archive:
                assert "__main__.py" in archive.namelist()
                for name in archive.namelist():
                    compile(archive.read(name), name, "exec")
    with pytest.raises(ValueError, match="no program"):
        BENCHMARKS["bench.serving"].payload_source()


PIECES = ["12 KB", "13.7 us", "|", "0.9 GB/s", "\n", "size", "time (us)", "GPU 0", "->", "{", "}"]
PIECES += ["P2P Connectivity Matrix", " D\\D 0 1", "  0 1 2", "Test 1: [", "1e999", "inf", "\t", "٣ KB"]
PIECES += ["  8192 2048 float sum -1 1e999 1 1 0", "=== Serving Benchmark Result ===", '{"path":"same"}']


@settings(max_examples=50)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=30).map(" ".join))
def test_no_text_makes_a_reader_raise_or_forget_its_fact(text: str) -> None:
    for benchmark in BENCHMARKS.values():
        readings = benchmark.parse(Output(text))
        assert {r.fact_id for r in readings} == {f.id for f in benchmark.supplies}


# --- copies written down -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size", "time_us"),
    [
        ("10 KB: 20.0 us (0.51 GB/s)", 10240, 20.0),
        ("10 KB: 20.0 us (0.50 GB/s)", 10000, 20.0),
        ("| size | GB/s | µs |\n|---|---|---|\n| 64 KB | 2.62 | 25.0 |", 65536, 25.0),
        ("size=65536 time=25.0us bw=2.62GB/s", 65536, 25.0),
        ("size=65536 time=25.0 bw=2.62", 65536, 25.0),
        ("bytes,time_us,GB/s\n65536,25.0,2.62", 65536, 25.0),
        ("GPU 0 -> GPU 1: 2 MiB in 0.1 ms", 2097152, 100.0),
    ],
)
def test_the_unit_is_what_the_arithmetic_says(text: str, size: int, time_us: float) -> None:
    (row,) = copy_table.parse(text).rows
    assert (row.size_bytes, row.time_us, row.timing) == (size, time_us, Timing.UNKNOWN)


def test_a_row_that_contradicts_itself_is_left_out_and_named() -> None:
    result = copy_table.parse("8 MB: 200 us (41.9 GB/s)\n8 MB: 200 us (30.0 GB/s)")
    assert [row.line for row in result.rows] == [1]
    (rejected,) = result.rejected
    assert rejected.line == 2
    assert rejected.printed_gb_per_s == 30.0
    assert rejected.computed_gb_per_s == pytest.approx(41.94, abs=0.01)


def test_one_figure_is_enough_and_the_other_is_computed() -> None:
    (row,) = copy_table.parse("2 MiB at 20 GB/s").rows
    assert row.time_us == pytest.approx(104.86, abs=0.01)


def test_headings_say_path_and_timing_for_the_rows_below() -> None:
    text = "GPU 0 to GPU 0, CUDA graph\n10 KiB 0.9 us\n\nGPU 0 to GPU 1, with a synchronise\n10 KiB 15 us"
    same, peer = copy_table.parse(text).rows
    assert (same.path, same.timing) == (CopyPath.SAME, Timing.DEVICE)
    assert (peer.path, peer.timing, peer.destination) == (CopyPath.PEER, Timing.HOST_SYNC, "1")


@settings(max_examples=50)
@given(kib=st.integers(1, 4000), time_us=st.floats(1, 5000), base=st.sampled_from([1000, 1024]))
def test_either_unit_is_found_from_exact_figures(kib: int, time_us: float, base: int) -> None:
    rate = kib * base / time_us / 1e3
    (row,) = copy_table.parse(f"{kib} KB: {time_us:.6f} us ({rate:.9f} GB/s)").rows
    assert row.size_bytes == kib * base


# --- the payload's lines -----------------------------------------------------------------------------

ROW = {"path": "peer", "source": "0", "destination": "1", "size_bytes": 12288, "timing": "device", "time_us": 3.5}


def _lines(*objects: object) -> Output:
    return Output("\n".join(json.dumps(o) for o in objects))


def test_a_cut_run_keeps_its_rows_and_says_that_it_was_cut() -> None:
    whole, _ = _read("bench.copy", _lines(ROW, {"end": True}))
    assert whole.complete
    cut, _ = _read("bench.copy", _lines(ROW, {"stopped": "the time limit was reached"}))
    assert cut.value.rows == whole.value.rows
    assert cut.missing == ("the end: the time limit was reached",)
    refused, _ = _read("bench.copy", _lines({"error": "busy", "fix": "wait"}))
    assert (refused.kind, refused.detail) == (ReadingKind.UNSUPPORTED, "busy; wait")


# --- nccl-tests --------------------------------------------------------------------------------------


def test_each_table_is_a_reading_of_its_own() -> None:
    text = "NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 4\n" + TABLE.format(graph=0, wrong=0)
    text += TABLE.format(graph=20, wrong=3)
    off, graph = (r.value for r in _read("bench.nccl_tests", Output(text)))
    assert (off.p2p, off.timing, off.rows[0].ranks) == (False, Timing.UNKNOWN, 4)
    assert (graph.p2p, graph.timing) == (None, Timing.DEVICE)
    assert [(r.in_place, r.time_us, r.wrong) for r in graph.rows] == [(False, 21.5, 0), (True, 20.1, 3)]


def test_a_json_report_reads_like_its_table() -> None:
    side = {"time": 21.5, "alg_bw": 0.38, "bus_bw": 0.57, "nwrong": 0.0}
    report = {
        "version": 1,
        "args": ["./all_reduce_perf", "-G", "20"],
        "env": ["NCCL_P2P_DISABLE=1", "HOME=/root"],
        "config": {"graph": 20},
        "devices": [{"rank": 0, "device_info": "X"}, {"rank": 1, "device_info": "X"}],
        "results": [{"size": 8192, "out_of_place": side, "in_place": side}],
    }
    (reading,) = _read("bench.nccl_tests", Output(json.dumps(report)))
    assert (reading.value.p2p, reading.value.timing) == (False, Timing.DEVICE)
    assert [(r.ranks, r.wrong, r.in_place) for r in reading.value.rows] == [(2, 0, False), (2, 0, True)]


def test_rows_of_another_collective_are_no_all_reduce() -> None:
    text = "# Collective test starting: all_gather_perf\n" + TABLE.format(graph=0, wrong=0)
    (reading,) = _read("bench.nccl_tests", Output(text))
    assert reading.kind is ReadingKind.ABSENT


# --- real outputs ------------------------------------------------------------------------------------


def _of(path: str) -> Output:
    root = MEASUREMENTS if path.startswith("h200x2") else CORPUS
    (found,) = root.glob(path)
    return Output(clean(found.read_bytes()))


@needs_corpus
def test_a_matrix_that_was_cut_says_which_rows_are_missing() -> None:
    (reading,) = _read("bench.p2p_bandwidth_latency", _of("059-*/nvbandwidth.h100.txt"))
    (matrix,) = reading.value
    values = [v for row in matrix.values for v in row if v is not None]
    assert (min(values), max(values), len(matrix.gpus)) == (370.26, 372.96, 8)
    assert len(reading.missing) == 2


@needs_corpus
def test_tables_between_cpu_and_gpus_are_not_between_gpus() -> None:
    path = "059-*/nvbandwidth.h800-hostside.txt"
    (reading,) = _read("bench.p2p_bandwidth_latency", _of(path))
    assert [m.title for m in reading.value] == ["device_to_device_memcpy_read_ce"]


@needs_corpus
def test_both_arms_of_the_bandwidth_test_stay_apart() -> None:
    path = "025-*/p2pBandwidthLatencyTest.txt"
    (reading,) = _read("bench.p2p_bandwidth_latency", _of(path))
    arms = {(m.unit, m.p2p) for m in reading.value}
    assert arms == {("access", None), ("GB/s", False), ("GB/s", True), ("us", False), ("us", True)}
    latency = next(m for m in reading.value if m.unit == "us" and m.p2p is False)
    assert latency.values[0][1] == 25.52


@needs_corpus
@pytest.mark.parametrize(
    ("path", "output", "total", "concurrency"),
    [
        ("065-*/vllm-bench-serve.txt", 62.49, 586.88, None),
        ("065-*/vllm-benchmark-serving-old.txt", 2993.85, 6455.63, None),
        ("065-*/sglang-bench-serving.txt", 237.89, 1189.47, 8),
    ],
)
def test_serving_blocks(path: str, output: float, total: float, concurrency: int | None) -> None:
    (reading,) = _read("bench.serving", _of(path))
    (row,) = reading.value
    assert (row.output_tokens_per_s, row.total_tokens_per_s) == (output, total)
    assert row.concurrency == concurrency


@needs_corpus
def test_four_runs_in_one_file_are_four_results() -> None:
    readings = _read("bench.nccl_tests", _of("h200x2/nccl-tests-allreduce.txt"))
    first = [(r.value.timing, r.value.rows[1].time_us) for r in readings]
    unknown, device = Timing.UNKNOWN, Timing.DEVICE
    assert first == [(unknown, 19.13), (device, 7.65), (unknown, 20.21), (device, 13.21)]


@pytest.mark.parametrize(
    ("unit", "gb_per_s"), [("GB/s", 20.0), ("GiB/s", 20 * 1024**3 / 1e9), ("MiB/s", 20 * 1024**2 / 1e9)]
)
def test_a_binary_rate_is_told_from_a_decimal_one(unit: str, gb_per_s: float) -> None:
    (row,) = copy_table.parse(f"2 MiB at 20 {unit}").rows
    assert row.gb_per_s == pytest.approx(gb_per_s, rel=1e-6)
