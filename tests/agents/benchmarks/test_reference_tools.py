"""Reference tools of the machine, run by us: stand-ins that print what the real ones do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.agent import Ending
from agents.benchmark import all_benchmarks
from agents.facts import ReadingKind
from agents.local import LocalAgent
from agents.probe import Output
from tests.agents.asking import run_payload

pytestmark = [pytest.mark.service, pytest.mark.thorough]

NCCL_TESTS = all_benchmarks()["bench.nccl_tests"]
PERF = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -g ] && gpus=$2; [ "$1" = -G ] && graph=$2; shift; done
time=7.5; [ "$NCCL_P2P_DISABLE" = 1 ] && time=12.8
cat <<TABLE
# nThread 1 nGpus $gpus minBytes 12288 maxBytes 12288 step: 4(factor) validation: 1 graph: $graph
#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
   12288   6144   bfloat16   sum   -1   $time   1.64   1.64   0   $time   1.64   1.64   0
# Out of bounds values : 0 OK
TABLE
"""
SMI = """#!/bin/sh
case $1 in
  -L) echo 'GPU 0: NVIDIA H200'; echo 'GPU 1: NVIDIA H200' ;;
  *) printf '%s' "$HOLDERS" ;;
esac
"""

Run = Callable[[str], tuple[Ending, bytes]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs it with these processes on the GPUs."""
    for name, text in (("all_reduce_perf", PERF), ("nvidia-smi", SMI)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def start(holders: str) -> tuple[Ending, bytes]:
        monkeypatch.setenv("HOLDERS", holders)
        argv = [str(tmp_path / "all_reduce_perf"), *NCCL_TESTS.argv]
        program = NCCL_TESTS.payload_source().decode()
        return run_payload(LocalAgent(), program, argv, interpreter="sh")

    return start


def test_nccl_tests_run_on_all_gpus_without_p2p_and_as_nccl_chooses(run: Run) -> None:
    ending, raw = run("")
    assert ending.exit_code == 0
    readings = NCCL_TESTS.parse(Output(raw.decode()))
    found = [(r.value.p2p, r.value.rows[-1].time_us, r.value.rows[-1].ranks) for r in readings if r.value]
    assert found == [(False, 12.8, 2), (None, 7.5, 2)]
    assert all(row.graph for r in readings if r.value for row in r.value.rows)


def test_busy_gpus_are_left_alone(run: Run) -> None:
    ending, raw = run("4711\n")
    assert (ending.exit_code, raw) == (2, b"")
    assert b"busy, with process 4711" in ending.stderr
    (reading,) = NCCL_TESTS.parse(Output(raw.decode()))
    assert reading.kind is ReadingKind.UNREADABLE
