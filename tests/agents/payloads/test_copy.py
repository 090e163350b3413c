"""The copy payload, run for real: on this machine's CPU, ended early, and without torch."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.benchmark import all_benchmarks
from agents.facts import Reading, ReadingKind
from agents.facts.bench import CopyPath, Timing
from agents.probe import Output
from tests.agents.payloads.running import all_gone
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.thorough  # they start processes
SHARED = Path(__file__).resolve().parents[3] / "agents" / "payloads" / "_shared"
BENCHMARK = all_benchmarks()["bench.copy"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it lies on a target."""
    path = tmp_path_factory.mktemp("shipped") / "program"
    path.write_bytes(BENCHMARK.payload_source())
    return path


def _start(program: Path, *argv: str, isolated: bool = False) -> subprocess.Popen[bytes]:
    return _run([*(["-I", "-S"] if isolated else []), str(program), *argv])


def _run(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _finish(process: subprocess.Popen[bytes]) -> tuple[list[dict[str, Any]], str, str]:
    """Its lines, its raw output and standard error; standard input stays open meanwhile."""
    assert process.stdout
    assert process.stderr
    out, err = process.stdout.read().decode(), process.stderr.read().decode()
    process.wait(LIMIT_S)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
    return [json.loads(line) for line in out.splitlines()], out, err


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _worker_of(process: subprocess.Popen[bytes]) -> int:
    wait_until(lambda: _children(process.pid))
    return _children(process.pid)[0]


def test_without_torch_it_says_so_in_one_line(program: Path) -> None:
    lines, _, err = _finish(_start(program, "--device", "cpu", isolated=True))
    assert len(lines) == 1
    assert "torch cannot be loaded" in lines[0]["error"]
    assert lines[0]["fix"]
    assert err == ""


@pytest.mark.parametrize("sizes", ["12Q", "0", "-5K"])
def test_sizes_that_are_none_are_refused(program: Path, sizes: str) -> None:
    lines, _, err = _finish(_start(program, f"--sizes={sizes}", isolated=True))
    assert "fix" in lines[0]
    assert err == ""


@pytest.mark.service
def test_on_a_cpu_every_size_gets_both_timings(program: Path) -> None:
    pytest.importorskip("torch")
    _, out, err = _finish(
        _start(program, "--device", "cpu", "--sizes", "12K", "--hidden", "6144", "--row-seconds", "0.02")
    )
    assert err == ""
    reading, _ = BENCHMARK.parse(Output(out))
    assert reading.kind is ReadingKind.KNOWN
    assert reading.complete
    assert reading.value
    result = reading.value
    assert result.environment["device"] == "cpu"
    same = [row for row in result.rows if row.path is CopyPath.SAME]
    assert {row.timing for row in same} == {Timing.DEVICE, Timing.HOST_SYNC}
    assert {row.size_bytes for row in same} == {12288}
    for row in result.rows:
        assert row.ci_low_us <= row.time_us <= row.ci_high_us
        assert row.time_us <= row.p95_us <= row.p99_us


@pytest.mark.service
@pytest.mark.parametrize("how", ["input closed", "limit", "terminated", "watcher killed"])
def test_nothing_is_left_when_it_is_ended(program: Path, how: str) -> None:
    pytest.importorskip("torch")
    limit = "0.5" if how == "limit" else "60"
    process = _start(program, "--device", "cpu", "--row-seconds", "5", "--limit", limit)
    worker = _worker_of(process)
    assert process.stdin
    assert process.stdout
    if how != "limit":
        assert b"environment" in process.stdout.readline()  # it measures by now
    if how == "input closed":
        process.stdin.close()
    elif how == "terminated":
        process.terminate()
    elif how == "watcher killed":
        os.kill(process.pid, signal.SIGKILL)
    lines, _, err = _finish(process)
    assert all_gone({worker})
    assert err == ""
    if how != "watcher killed":
        assert "stopped" in lines[-1]


def test_what_a_caller_waits_for_takes_longer_than_the_device_needs() -> None:
    """Printed by this program on two H200 with NVLink: driver 580.159, torch 2.11."""
    reading, _ = BENCHMARK.parse(Output(Path(__file__).with_name("two_h200.jsonl").read_text()))
    assert reading.value
    ends = {("0", "0"), ("cpu", "0"), ("0", "cpu"), ("0", "1")}
    first = [row for row in reading.value.rows if (row.source, row.destination) in ends]
    device, host = (
        {(r.path, r.peer_access, r.size_bytes): r.time_us for r in first if r.timing is timing}
        for timing in (Timing.DEVICE, Timing.HOST_SYNC)
    )
    waited = {key for key in device if key[0] is not CopyPath.PEER_BOTH_WAYS}
    assert set(host) - waited == {(CopyPath.SYNCHRONISE, None, 0), (CopyPath.LAUNCH, None, 0)}
    # 48 KiB over the host: 21.2 µs each in a queue, 19.6 for a caller who waits for each.
    assert all(device[key] < host[key] * 1.1 for key in waited)
    for size in (12288, 16777216):
        same, on, off = (
            device[key]
            for key in ((CopyPath.SAME, None, size), (CopyPath.PEER, True, size), (CopyPath.PEER, False, size))
        )
        assert same < on < off / 3


@pytest.mark.service
def test_a_size_without_room_costs_its_own_rows_alone(program: Path) -> None:
    pytest.importorskip("torch")
    sizes = ("--sizes", "12K,400000G", "--row-seconds", "0.02")
    lines, out, err = _finish(_start(program, "--device", "cpu", *sizes))
    assert (err, lines[-1]) == ("", {"end": True})
    reading, _ = BENCHMARK.parse(Output(out))
    assert reading.value
    assert {row.size_bytes for row in reading.value.rows} == {0, 12288}
    (missing,) = reading.missing
    assert "429496729600000 bytes" in missing


def test_parts_that_are_none_are_refused(program: Path) -> None:
    lines, _, err = _finish(_start(program, "--only", "pear", isolated=True))
    assert "peer" in lines[0]["fix"]
    assert err == ""


# --- which pairs --------------------------------------------------------------------------------------

PLAN = """
import json, sys
sys.path.insert(0, sys.argv[1])
from plan import between, representative, swept_sizes
whole, swept = between(sys.argv[2], int(sys.argv[3]))
print(json.dumps([whole, swept, representative(whole), swept_sizes([12288, 2**24, 2**26])]))
"""


@pytest.mark.parametrize(
    ("chosen", "gpus", "whole", "swept", "both_ways"),
    [
        ("auto", 1, [], 0, []),
        ("auto", 2, [[0, 1], [1, 0]], 0, [[0, 1]]),
        ("auto", 8, [[0, 1], [1, 0], [0, 7]], 53, [[0, 1], [0, 7]]),
        ("first", 8, [[0, 1]], 0, [[0, 1]]),
        ("2-1,1-2,2-1", 3, [[2, 1], [1, 2]], 0, [[2, 1]]),
    ],
)
def test_every_ordered_pair_is_measured_and_few_of_them_whole(
    program: Path, chosen: str, gpus: int, whole: Any, swept: int, both_ways: Any
) -> None:
    process = _run(["-I", "-c", PLAN, str(program), chosen, str(gpus)])
    out, err = process.communicate(timeout=LIMIT_S)
    assert err == b""
    plan = json.loads(out)
    assert (plan[0], len(plan[1]), plan[2]) == (whole, swept, both_ways)
    if chosen == "auto":
        pairs = [*map(tuple, plan[0]), *map(tuple, plan[1])]
        assert sorted(pairs) == [(a, b) for a in range(gpus) for b in range(gpus) if a != b]
    assert plan[3] == [12288, 2**24]


# --- a part that goes wrong ---------------------------------------------------------------------------

PARTS = """
import functools, os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from lines import report, row_of, say
from processes import ENOUGH, GO_ON, REFUSED, Stopped, run_all


def crash(): os.kill(os.getpid(), signal.SIGSEGV)
def hang(): time.sleep(60)
def good(): report(row_of("same", 0, 0, 12), "device", "graph", [1.0] * 20); return GO_ON
def enough(): good(); return ENOUGH
def refuse(): say(error="busy", fix="wait"); return REFUSED

try:
    code = run_all([(name, globals()[name]) for name in sys.argv[3:]], float(sys.argv[2]), least=0.2)
except Stopped as stopped:
    say(stopped=str(stopped))
    sys.exit(4)
if code == 0:
    say(end=True)
sys.exit(code)
"""


def _parts(limit_s: float, *parts: str) -> tuple[int, list[dict[str, Any]], Reading[Any]]:
    process = _run(["-I", "-c", PARTS, str(SHARED), str(limit_s), *parts])
    lines, out, err = _finish(process)
    assert err == ""
    reading, _ = BENCHMARK.parse(Output(out))
    return process.returncode, lines, reading


def test_a_part_that_crashes_or_hangs_costs_its_own_rows_alone() -> None:
    code, lines, reading = _parts(6.0, "crash", "good", "hang", "good")
    assert (code, lines[-1]) == (0, {"end": True})
    assert reading.value
    assert len(reading.value.rows) == 2
    crashed, hung = reading.missing
    assert "crash: the process was ended by signal 11" in crashed
    assert "hang: not finished after" in hung


def test_nothing_but_failures_is_no_measurement() -> None:
    _, _, reading = _parts(5.0, "crash")
    assert reading.kind is ReadingKind.UNREADABLE
    assert "signal 11" in reading.detail


@pytest.mark.parametrize(
    ("parts", "code", "last"),
    [(["refuse", "good"], 3, "error"), (["enough", "hang"], 0, "end"), (["good", "hang"], 4, "stopped")],
)
def test_some_parts_end_the_run(parts: list[str], code: int, last: str) -> None:
    ended, lines, _ = _parts(0.8, *parts)
    assert ended == code
    assert last in lines[-1]


# --- the statistics -----------------------------------------------------------------------------------


def _lines_module() -> Any:
    spec = importlib.util.spec_from_file_location("copy_payload_lines", SHARED / "lines.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LINES = _lines_module()


@settings(max_examples=30)
@given(st.lists(st.floats(0.01, 1e6), min_size=20, max_size=60))
def test_figures_of_a_row_are_in_order(samples_us: list[float]) -> None:
    row = LINES.summary(samples_us)
    slack = 1e-4  # figures are rounded
    assert min(samples_us) - slack <= row["ci_low_us"] <= row["time_us"] <= row["ci_high_us"]
    assert row["time_us"] <= row["p95_us"] <= row["p99_us"] <= max(samples_us) + slack


@pytest.mark.parametrize(
    ("samples_us", "unstable"),
    [
        ([10.0] * 20, False),
        ([10.0, 10.4] * 10, False),
        ([10.0] * 10 + [12.0] * 10, True),
        ([10.0, 20.0] * 10, True),
        ([12.0, 12.0, 12.0, 12.0, 21.0] * 20, True),
        ([12.0] * 19 + [21.0], False),
    ],
)
def test_samples_that_spread_or_drift_are_unstable(samples_us: list[float], unstable: bool) -> None:
    assert LINES.summary(samples_us)["unstable"] is unstable


@pytest.mark.parametrize(
    ("samples_us", "outliers"),
    [
        ([10.1] * 20, 0),
        ([10.0, 11.0, 12.0, 13.0] * 5 + [18.9], 0),
        ([10.0, 11.0, 12.0, 13.0] * 5 + [19.1], 1),
        ([10.0, 11.0, 12.0, 13.0] * 5 + [0.9, 22.1, 400.0], 3),
        ([12.0] * 19 + [21.0], 1),
        ([5.0, 5.0], 0),
    ],
)
def test_samples_beyond_the_outer_fences_are_counted_and_stay(samples_us: list[float], outliers: int) -> None:
    row = LINES.summary(samples_us)
    assert (row["outliers"], row["samples"]) == (outliers, len(samples_us))
    mean = sum(samples_us) / len(samples_us)
    spread = (sum((us - mean) ** 2 for us in samples_us) / len(samples_us)) ** 0.5
    assert row["cv"] == pytest.approx(spread / mean, abs=1e-4)
