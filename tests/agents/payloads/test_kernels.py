"""The kernels payload: run for real on this machine's CPU, and what is read of its lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import Reading, ReadingKind
from agents.facts.bench import Timing
from agents.facts.kernels import Work
from agents.parsing import kernel_lines
from agents.probe import Output
from tests.agents.payloads.running import all_gone, finish, start, workers_of

pytestmark = pytest.mark.thorough  # they start processes

MEMORY, LAUNCH = (all_benchmarks()[f"bench.{name}"] for name in ("memory", "launch"))
SMALL = ("--device", "cpu", "--row-seconds", "0.01", "--hidden", "64", "--intermediate", "32")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it lies on a target."""
    path = tmp_path_factory.mktemp("shipped") / "program"
    path.write_bytes(MEMORY.payload_source())
    return path


@pytest.mark.parametrize("measure", ["memory", "launch"])
def test_without_torch_it_says_so_in_one_line(program: Path, measure: str) -> None:
    argv = ("--measure", measure, "--device", "cpu")
    (refused,), _, err = finish(start(program, *argv, isolated=True))
    assert "torch cannot be loaded" in refused["error"]
    assert err == ""


@pytest.mark.parametrize("argv", ["--batch=x", "--batch=0", "--hidden=-1", "--experts=99999999"])
def test_sizes_that_are_none_are_refused(program: Path, argv: str) -> None:
    lines, _, err = finish(start(program, "--measure", "launch", argv, isolated=True))
    assert "fix" in lines[0]
    assert err == ""


@pytest.mark.service
def test_memory_on_a_cpu_is_no_measurement_of_a_gpu(program: Path) -> None:
    pytest.importorskip("torch")
    lines, out, err = finish(start(program, "--measure", "memory", *SMALL))
    assert err == ""
    assert lines[-1] == {"end": True}
    found = kernel_lines.memory(out)
    assert [row.kernel for row in found.rows] == ["read", "copy", "triad"]
    assert not any(row.beyond_l2 for row in found.rows)
    reading, _ = MEMORY.parse(Output(out))
    assert reading.kind is ReadingKind.NOT_RUN
    assert "no GPU was measured" in reading.detail


@pytest.mark.service
def test_launches_and_products_on_a_cpu(program: Path) -> None:
    pytest.importorskip("torch")
    argv = ("--measure", "launch", *SMALL, "--batch", "1,8", "--experts", "16", "--active", "2")
    lines, out, err = finish(start(program, *argv))
    assert err == ""
    assert lines[-1] == {"end": True}
    rows = kernel_lines.launch(out).rows
    assert [row.batch for row in rows if row.what is Work.GEMM] == [1, 8]
    touched = {row.batch: row.experts for row in rows if row.what is Work.GROUPED_GEMM}
    assert touched == {1: 2, 8: 11}  # 16 experts, 2 a token: 16 × (1 − (7/8)^8)
    assert {row.figures.timing for row in rows} == {Timing.HOST_SYNC}
    reading, _ = LAUNCH.parse(Output(out))
    assert reading.kind is ReadingKind.NOT_RUN


@pytest.mark.service
@pytest.mark.parametrize("how", ["input closed", "limit", "terminated"])
def test_nothing_is_left_when_it_is_ended(program: Path, how: str) -> None:
    pytest.importorskip("torch")
    # Two hundred products of this size take a processor minutes, so that the work cannot end by itself before.
    limit = "3" if how == "limit" else "60"
    argv = ("--measure", "launch", "--device", "cpu", "--hidden", "8192", "--row-seconds", "20", "--limit", limit)
    process = start(program, *argv)
    assert process.stdin
    assert process.stdout
    if how != "limit":
        assert b"environment" in process.stdout.readline()  # it measures by now
    working = workers_of(process, 1)
    if how == "input closed":
        process.stdin.close()
    elif how == "terminated":
        process.terminate()
    lines, _, err = finish(process)
    assert "stopped" in lines[-1]
    assert err == ""
    assert all_gone(working)


# --- what is read ------------------------------------------------------------------------------------

FIGURES = {
    "timing": "device",
    "method": "queued",
    "time_us": 125.0,
    "p95_us": 126.0,
    "p99_us": 127.0,
    "ci_low_us": 124.9,
    "ci_high_us": 125.1,
    "cv": 0.01,
    "samples": 60,
    "outliers": 3,
    "unstable": False,
}
READ = {
    "kernel": "read",
    "gpu": "0",
    "size_bytes": 536870912,
    "l2_bytes": 62914560,
    "moved_bytes": 536870912,
    **FIGURES,
    "gb_per_s": 4294.9673,
}


def printed(schema: str, *rows: dict[str, Any], end: bool = True, device: str = "cuda") -> Output:
    head = {"schema": f"peerpath.{schema}/1", "environment": {"device": device, "driver": "580"}}
    last = [{"end": True}] if end else []
    return Output("\n".join(json.dumps(line) for line in [head, *rows, *last]))


def read(output: Output) -> Reading[Any]:
    reading, _ = MEMORY.parse(output)
    return reading


def test_a_gpu_that_was_measured_is_known() -> None:
    reading = read(printed("memory", READ))
    assert reading.complete
    assert reading.value
    (row,) = reading.value.rows
    assert (row.kernel, row.gpu, row.beyond_l2) == ("read", "0", True)
    assert row.gb_per_s == pytest.approx(4294.97, abs=0.01)
    assert (row.figures.p99_us, row.figures.cv, row.figures.unstable) == (127.0, 0.01, False)
    assert (row.figures.samples, row.figures.outliers) == (60, 3)
    assert reading.lines == (2,)


@pytest.mark.parametrize(
    "change",
    [
        {"gb_per_s": 9000.0},  # its own arithmetic does not hold
        {"time_us": 0},
        {"time_us": True},
        {"timing": "guessed"},
        {"method": "call"},  # which is no way of timing a device
        {"kernel": "sort"},
        {"moved_bytes": -5},
        {"size_bytes": "512 MiB"},
    ],
)
def test_a_row_that_cannot_be_is_none(change: dict[str, Any]) -> None:
    assert read(printed("memory", {**READ, **change})).kind is ReadingKind.UNREADABLE


def test_a_run_that_was_cut_says_so() -> None:
    reading = read(printed("memory", READ, end=False))
    assert reading.kind is ReadingKind.KNOWN
    assert reading.missing == ("the end: the output stops before it",)


def test_launch_rows_keep_what_they_are_of() -> None:
    gemm = {
        "what": "gemm",
        "gpu": "0",
        "batch": 8,
        "hidden": 6144,
        "intermediate": 2048,
        "dtype": "bf16",
        "weight_bytes": 25165824,
        "beyond_l2": True,
        **FIGURES,
        "method": "graph",
        "time_us": 6.2,
    }
    reading, _ = LAUNCH.parse(printed("launch", gemm, {"what": "nap", "gpu": "0", **FIGURES}))
    assert reading.value
    (row,) = reading.value.rows
    assert (row.what, row.batch, row.dtype, row.beyond_l2) == (Work.GEMM, 8, "bf16", True)
    assert row.gb_per_s == pytest.approx(4059.0, abs=0.1)
    assert reading.value.time_us(Work.GEMM, "graph") == 6.2
    assert reading.value.time_us(Work.KERNEL, "graph") is None
