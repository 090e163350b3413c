"""The all-reduce payload: run for real over gloo on this machine's CPU, and what is read of its lines."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.benchmark import all_benchmarks
from agents.facts import Reading, ReadingKind
from agents.facts.bench import AllReduceResult, Timing
from agents.parsing import allreduce_lines
from agents.probe import Output
from tests.agents.payloads.running import all_gone, finish, start, workers_of

pytestmark = pytest.mark.thorough  # they start processes

BENCHMARK = all_benchmarks()["bench.allreduce"]
SMALL = ("--device", "cpu", "--sizes", "4K,64K", "--row-seconds", "0.02", "--stall-seconds", "5")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it lies on a target."""
    path = tmp_path_factory.mktemp("shipped") / "program"
    path.write_bytes(BENCHMARK.payload_source())
    return path


def test_without_torch_it_says_so_in_one_line(program: Path) -> None:
    lines, _, err = finish(start(program, "--device", "cpu", isolated=True))
    (refused,) = lines
    assert "torch cannot be loaded" in refused["error"]
    assert refused["fix"]
    assert err == ""


@pytest.mark.parametrize("argv", ["--sizes=12Q", "--sizes=0", "--hidden=8 --batch=x"])
def test_sizes_that_are_none_are_refused(program: Path, argv: str) -> None:
    lines, _, err = finish(start(program, *argv.split(), isolated=True))
    assert "fix" in lines[0]
    assert err == ""


# --- for real, over gloo ------------------------------------------------------------------------------


@pytest.mark.service
@pytest.mark.parametrize(
    ("fault", "outcomes", "verdict"),
    [
        ("", ["right", "right"], "right"),
        ("wrong", ["right", "wrong"], "wrong"),
        ("hang", ["right", "hang"], "hang"),
        ("control", ["wrong", "right"], "inconclusive"),
    ],
)
def test_arms_end_as_they_have_to(program: Path, fault: str, outcomes: list[str], verdict: str) -> None:
    pytest.importorskip("torch")
    more = ("--simulate-fault", fault) if fault else ()
    lines, out, err = finish(start(program, *SMALL, *more))
    assert err == ""
    assert [line["outcome"] for line in lines if "outcome" in line] == outcomes
    assert lines[-1] == {"end": True}
    found = allreduce_lines.parse(out)
    assert found.verdict == verdict
    if not fault:
        for arm in found.arms:
            assert [row.size_bytes for row in arm.result.rows] == [4096, 65536]
            assert {(row.wrong, row.ranks) for row in arm.result.rows} == {(0, 2)}
    reading, _ = BENCHMARK.parse(Output(out))
    assert reading.kind is ReadingKind.NOT_RUN  # a try on a CPU is no evidence


@pytest.mark.service
@pytest.mark.parametrize("how", ["input closed", "terminated", "watcher killed", "rank killed"])
def test_nothing_is_left_when_it_is_ended(program: Path, how: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    process = start(program, *SMALL, "--simulate-fault", "hang", "--stall-seconds", "60")
    assert process.stdin
    assert process.stdout
    while b'"outcome"' not in process.stdout.readline():  # the control has ended
        pass
    workers = workers_of(process, 3)  # a leader and two ranks
    if how == "input closed":
        process.stdin.close()
    elif how == "terminated":
        process.terminate()
    elif how == "watcher killed":
        os.kill(process.pid, signal.SIGKILL)
    else:
        os.kill(max(workers), signal.SIGKILL)
    lines, _, err = finish(process)
    assert all_gone(workers)
    assert err == ""
    if how == "rank killed":
        assert [line["outcome"] for line in lines if "outcome" in line] == ["failed"]
    elif how != "watcher killed":
        assert "stopped" in lines[-1]


# --- what two GPUs gave -------------------------------------------------------------------------------


def test_what_two_gpus_gave_is_read_whole() -> None:
    """Printed by this program on two H200 with NVLink: driver 580.159, torch 2.11, NCCL 2.28.9."""
    text = Path(__file__).with_name("two_h200_allreduce.jsonl").read_text()
    off, on = (_known(reading) for reading in BENCHMARK.parse(Output(text))[:2])
    assert (off.p2p, off.environment["transport"]) == (False, "SHM/direct/direct")
    assert (on.p2p, on.environment["transport"]) == (True, "P2P/CUMEM")
    assert on.environment["connections"] == "P2P/CUMEM 48"
    for arm in (off, on):
        assert {row.wrong for row in arm.rows} == {0}
        assert all(row.time_us <= (row.p95_us or 0) <= (row.p99_us or 0) for row in arm.rows)
        assert {row.timing for row in arm.rows if row.graph} == {Timing.DEVICE}
        device, host = (
            {row.size_bytes: row for row in arm.rows if row.method == method} for method in ("graph", "call")
        )
        assert set(device) == set(host)
        assert all(device[size].time_us < host[size].time_us for size in device)
    slow = {row.size_bytes: row.ci_low_us or 0.0 for row in off.rows if row.graph}
    fast = {row.size_bytes: row.ci_high_us or 0.0 for row in on.rows if row.graph}
    assert all(0 < fast[size] < slow[size] / 1.5 for size in slow)


def _known(reading: Reading[Any]) -> AllReduceResult:
    assert reading.complete
    assert isinstance(reading.value, AllReduceResult)
    return reading.value


# --- what is read -------------------------------------------------------------------------------------

HEADER = {"schema": "peerpath.allreduce/1", "environment": {"device": "cuda", "driver": "580.1"}}
ROW = {"size_bytes": 12288, "ranks": 2, "in_place": True, "wrong": 0, "time_us": 7.5}
GRAPH = {**ROW, "method": "graph", "timing": "device"}
P2P, SHM = {"transport": "P2P/CUMEM"}, {"transport": "SHM/direct/direct"}


def _read(*objects: object, header: object = HEADER) -> list[Reading[Any]]:
    text = "\n".join(json.dumps(o) for o in (header, *objects))
    *arms, _telemetry = BENCHMARK.parse(Output(text))
    return arms


def _end(arm: str, outcome: str, **more: str) -> dict[str, str]:
    return {"arm": arm, "outcome": outcome, **more}


@pytest.mark.parametrize(
    ("arm", "ending", "p2p"),
    [
        ("default", _end("default", "right", **P2P), True),
        ("default", _end("default", "right", **SHM), False),
        ("default", _end("default", "right", transport="mixed: P2P/CUMEM 4, SHM/direct 2"), None),
        ("default", _end("default", "right"), None),
        ("default", _end("default", "hang"), True),
        ("no_p2p", _end("no_p2p", "right"), False),
        ("p2p_forced", _end("p2p_forced", "right", **P2P), True),
    ],
)
def test_p2p_is_what_the_log_shows(arm: str, ending: object, p2p: bool | None) -> None:
    (reading,) = _read({"arm": arm, **GRAPH}, ending, {"end": True})
    assert _known(reading).p2p is p2p
    assert reading.lines == (2, 3)


def test_a_hang_without_a_row_is_known() -> None:
    (reading,) = _read(_end("default", "hang", why="nothing came back"), {"end": True})
    hung = _known(reading)
    assert (hung.rows, hung.environment["outcome"]) == ((), "hang")


@pytest.mark.parametrize("outcome", ["failed", "unusable"])
def test_rows_of_an_arm_that_broke_off_are_no_evidence(outcome: str) -> None:
    (reading,) = _read({"arm": "default", **GRAPH}, _end("default", outcome, **P2P, why="no"))
    assert reading.kind is ReadingKind.UNREADABLE
    assert outcome in reading.detail


def test_a_cut_run_keeps_its_rows_and_says_that_it_was_cut() -> None:
    rows = [{"arm": "no_p2p", **GRAPH}, _end("no_p2p", "right", **SHM), {"arm": "default", **GRAPH}]
    whole, cut = _read(*rows, {"stopped": "the time limit was reached"})
    assert whole.missing == ("the end: the time limit was reached",)
    assert cut.missing == ("default: how it ended", "the end: the time limit was reached")
    assert cut.value
    assert cut.value.p2p is None


def test_one_gpu_has_nothing_to_sum() -> None:
    (reading,) = _read({"verdict": "unusable", "why": "one GPU"}, {"end": True})
    assert (reading.kind, reading.detail) == (ReadingKind.UNSUPPORTED, "one GPU")


@pytest.mark.parametrize("said", [{"device": "cpu"}, {"device": "cuda", "argv": "--simulate-fault wrong"}])
def test_what_was_played_is_no_evidence(said: dict[str, str]) -> None:
    (reading,) = _read({"arm": "default", **GRAPH}, header={**HEADER, "environment": said})
    assert reading.kind is ReadingKind.NOT_RUN


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@settings(max_examples=50)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([*ROW, "arm", "outcome", "transport", "method", "timing", "verdict"]),
            ANY | st.sampled_from(["default", "no_p2p", "hang", "right"]),
        ),
        max_size=8,
    )
)
def test_no_line_makes_the_reader_raise_or_give_an_odd_row(lines: list[dict[str, Any]]) -> None:
    for reading in _read(*lines):
        for row in reading.value.rows if reading.value else ():
            assert row.size_bytes > 0
            assert row.time_us > 0
            assert row.line > 1
