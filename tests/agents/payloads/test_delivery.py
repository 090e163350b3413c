"""The delivery payload: run for real on memory of the CPU, with the faults it is there to find."""

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
from agents.probe import Output
from tests.agents.payloads.running import all_gone, descendants, finish, start

pytestmark = pytest.mark.thorough  # they start processes

BENCHMARK = all_benchmarks()["bench.delivery"]
SMALL = ("--device", "cpu", "--sizes", "12K,64K")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it lies on a target."""
    path = tmp_path_factory.mktemp("shipped") / "program"
    path.write_bytes(BENCHMARK.payload_source())
    return path


def _checks(program: Path, *argv: str) -> list[dict[str, Any]]:
    lines, out, err = finish(start(program, *SMALL, *argv, isolated=True))
    assert err == ""
    assert lines[-1] == {"end": True}
    reading, _ = BENCHMARK.parse(Output(out))
    assert reading.kind is ReadingKind.NOT_RUN  # no GPU was there
    return [line for line in lines if "verdict" in line]


def test_every_ordered_pair_gets_every_way_and_size(program: Path) -> None:
    checks = _checks(program, "--gpus", "3")
    assert {check["verdict"] for check in checks} == {"right"}
    named = [(c["source"], c["destination"], c["mapping"], c["method"], c["size_bytes"]) for c in checks]
    assert len(set(named)) == len(named) == 6 * 2 * 2 * 2


def test_a_mirror_is_found_although_the_sender_reads_its_bytes_back(program: Path) -> None:
    checks = _checks(program, "--simulate-fault", "mirror")
    assert len(checks) == 2 * 2 * 2 * 2
    for check in checks:
        assert check["verdict"] == "wrong"
        assert check["wrong_blocks"] == check["untouched_blocks"] == check["size_bytes"] // 4096
        assert check["sender_reads_it_back"] is True


def test_a_write_that_stops_short_is_found(program: Path) -> None:
    for check in _checks(program, "--simulate-fault", "torn"):
        assert (check["verdict"], check["wrong_blocks"]) == ("wrong", 1)
        assert check["first_wrong_byte"] == check["size_bytes"] - 4096
        assert check["sender_reads_it_back"] is False


def test_a_write_that_hangs_is_a_result_and_the_next_pair_is_tried(program: Path) -> None:
    checks = _checks(program, "--simulate-fault", "hang", "--pair-seconds", "0.7")
    assert [(c["source"], c["mapping"], c["verdict"]) for c in checks] == [
        ("0", "one_process", "hang"),
        ("0", "ipc", "hang"),
        ("1", "one_process", "hang"),
        ("1", "ipc", "hang"),
    ]
    assert {(c["method"], c["size_bytes"]) for c in checks} == {("copy_engine", 12288)}


def test_a_write_that_fails_is_said_in_the_drivers_words(program: Path) -> None:
    for check in _checks(program, "--simulate-fault", "failed"):
        assert check["verdict"] == "failed"
        assert "illegal memory access" in check["why"]


@pytest.mark.parametrize("how", ["input closed", "limit", "terminated", "watcher killed"])
def test_nothing_is_left_when_it_is_ended(program: Path, how: str) -> None:
    limit = "0.8" if how == "limit" else "60"
    process = start(program, *SMALL, "--simulate-fault", "hang", "--limit", limit, isolated=True)
    assert process.stdin
    assert process.stdout
    process.stdout.readline()
    workers: set[int] = set()
    while len(workers) < 1:
        workers = descendants(process.pid)
    if how == "input closed":
        process.stdin.close()
    elif how == "terminated":
        process.terminate()
    elif how == "watcher killed":
        os.kill(process.pid, signal.SIGKILL)
    lines, _, err = finish(process)
    assert all_gone(workers)
    assert err == ""
    if how != "watcher killed":
        assert "stopped" in lines[-1]


# --- what is read of it -------------------------------------------------------------------------------

HEADER = {"schema": "peerpath.delivery/1", "environment": {"device": "cuda", "driver": "580.1"}}
METHODS = ("copy_engine", "kernel_stores")
SIZES = (12288, 1048576)


def _check(pair: str, method: str, size: int, verdict: str = "right", **more: Any) -> dict[str, Any]:
    source, destination = pair.split("->")
    row = {"source": source, "destination": destination, "mapping": "one_process", "method": method}
    return {**row, "size_bytes": size, "verdict": verdict, **more}


def _whole(pair: str, **more: Any) -> list[dict[str, Any]]:
    return [_check(pair, method, size, **more) for method in METHODS for size in SIZES]


def _read(*objects: object, header: object = HEADER) -> Reading[Any]:
    reading, _ = BENCHMARK.parse(Output("\n".join(json.dumps(o) for o in (header, *objects))))
    return reading


def _pairs(reading: Reading[Any]) -> dict[str, bool]:
    return dict(reading.value.pairs) if reading.value else {}


def test_what_two_gpus_gave_is_read_whole() -> None:
    """Printed by this program on two H200 with NVLink: driver 580.159."""
    text = Path(__file__).with_name("two_h200_delivery.jsonl").read_text()
    reading, _ = BENCHMARK.parse(Output(text))
    assert (_pairs(reading), reading.complete) == ({"0->1": True, "1->0": True}, True)
    assert reading.value
    assert reading.value.environment["gpus"] == "NVIDIA H200, NVIDIA H200"
    assert len(reading.lines) == 2 * 2 * 2 * 3


def test_pairs_that_were_tried_in_every_way_are_right() -> None:
    reading = _read(*_whole("0->1"), *_whole("1->0"), {"end": True})
    assert (_pairs(reading), reading.complete) == ({"0->1": True, "1->0": True}, True)
    assert len(reading.lines) == 8


@pytest.mark.parametrize("verdict", ["wrong", "failed", "hang"])
@pytest.mark.parametrize("mapping", ["one_process", "ipc"])
def test_one_bad_check_makes_its_pair_wrong_and_no_other(verdict: str, mapping: str) -> None:
    bad = _check("1->0", "kernel_stores", 12288, verdict, mapping=mapping)
    reading = _read(*_whole("0->1"), *_whole("1->0"), bad, {"end": True})
    assert _pairs(reading) == {"0->1": True, "1->0": False}


def test_a_pair_without_kernel_stores_is_not_called_right() -> None:
    half = [_check("0->1", "copy_engine", size) for size in SIZES]
    reading = _read(*_whole("1->0"), *half, {"stopped": "the time limit was reached"})
    assert _pairs(reading) == {"1->0": True}
    assert reading.missing == ("0->1: not every way was tried", "the end: the time limit was reached")


def test_ipc_that_cannot_be_used_leaves_the_pair_right_and_is_named() -> None:
    refused = {"source": "0", "destination": "1", "mapping": "ipc", "verdict": "unusable", "why": "no"}
    reading = _read(*_whole("0->1"), refused, {"end": True})
    assert _pairs(reading) == {"0->1": True}
    assert reading.missing == ("0->1 (ipc): unusable, no",)


def test_no_peer_access_anywhere_is_no_failure() -> None:
    refused = {"source": "0", "destination": "1", "mapping": "one_process", "verdict": "unusable"}
    reading = _read({**refused, "why": "the driver gives no peer access"}, {"end": True})
    assert reading.kind is ReadingKind.UNSUPPORTED
    assert "no peer access" in reading.detail


def test_a_control_that_fails_decides_nothing() -> None:
    reading = _read(*_whole("0->1", verdict="inconclusive", why="memory"), {"end": True})
    assert reading.kind is ReadingKind.UNREADABLE
    assert "inconclusive" in reading.detail


@pytest.mark.parametrize("played", [{"device": "cpu"}, {"device": "cuda", "simulated_fault": "torn"}])
def test_what_was_played_is_no_evidence(played: dict[str, str]) -> None:
    header = {**HEADER, "environment": played}
    assert _read(*_whole("0->1"), {"end": True}, header=header).kind is ReadingKind.NOT_RUN


VERDICTS = ["right", "wrong", "failed", "hang", "unusable", "inconclusive", "?", None]


@settings(max_examples=50)
@given(
    st.lists(
        st.builds(
            _check,
            st.sampled_from(["0->1", "1->0", "x->1"]),
            st.sampled_from([*METHODS, ""]),
            st.sampled_from([*SIZES, "12", None, 1e400]),
            st.sampled_from(VERDICTS),
        ),
        max_size=12,
    )
)
def test_right_is_only_said_where_both_ways_and_every_size_were(rows: list[dict[str, Any]]) -> None:
    reading = _read(*rows)
    for pair, right in _pairs(reading).items():
        verdicts = {r["verdict"] for r in rows if f"{r['source']}->{r['destination']}" == pair}
        if right:
            tried = {r["method"] for r in rows if f"{r['source']}->{r['destination']}" == pair}
            assert tried >= set(METHODS)
            assert not verdicts & {"wrong", "failed", "hang", "inconclusive", "unusable"}
        else:
            assert verdicts & {"wrong", "failed", "hang"}
