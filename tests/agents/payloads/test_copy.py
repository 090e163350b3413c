"""The copy payload, run for real: on this machine's CPU, ended early, and without torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import ReadingKind
from agents.facts.bench import CopyPath, Timing
from agents.probe import Output

PAYLOAD = Path(__file__).resolve().parents[3] / "agents" / "payloads" / "copy.py"


def _start(*argv: str, isolated: bool = False) -> subprocess.Popen[bytes]:
    flags = ["-I", "-S"] if isolated else []
    return subprocess.Popen(
        [sys.executable, *flags, str(PAYLOAD), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _finish(process: subprocess.Popen[bytes]) -> tuple[list[dict[str, Any]], str, str]:
    """Its lines, its raw output and standard error; standard input stays open meanwhile."""
    assert process.stdout
    assert process.stderr
    out, err = process.stdout.read().decode(), process.stderr.read().decode()
    process.wait(30)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
    return [json.loads(line) for line in out.splitlines()], out, err


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _worker_of(process: subprocess.Popen[bytes]) -> int:
    for _ in range(200):
        if children := _children(process.pid):
            return children[0]
        time.sleep(0.02)
    raise AssertionError("no worker was started")


def _gone(pid: int) -> bool:
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.02)
    return False


def test_without_torch_it_says_so_in_one_line() -> None:
    lines, _, err = _finish(_start("--device", "cpu", isolated=True))
    assert "torch cannot be loaded" in lines[0]["error"]
    assert lines[0]["fix"]
    assert err == ""


@pytest.mark.parametrize("sizes", ["12Q", "0", "-5K"])
def test_sizes_that_are_none_are_refused(sizes: str) -> None:
    lines, _, err = _finish(_start(f"--sizes={sizes}", isolated=True))
    assert "fix" in lines[0]
    assert err == ""


@pytest.mark.service
def test_on_a_cpu_every_size_gets_both_timings() -> None:
    pytest.importorskip("torch")
    _, out, err = _finish(
        _start("--device", "cpu", "--sizes", "12K", "--hidden", "6144", "--row-seconds", "0.02")
    )
    assert err == ""
    (reading,) = all_benchmarks()["bench.copy"].parse(Output(out))
    assert reading.kind is ReadingKind.KNOWN
    assert reading.complete
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
def test_nothing_is_left_when_it_is_ended(how: str) -> None:
    pytest.importorskip("torch")
    limit = "0.5" if how == "limit" else "60"
    process = _start("--device", "cpu", "--row-seconds", "5", "--limit", limit)
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
    assert _gone(worker)
    assert err == ""
    if how != "watcher killed":
        assert "stopped" in lines[-1]
