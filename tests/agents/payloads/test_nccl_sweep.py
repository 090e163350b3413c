"""The sweep over NCCL's settings: run for real over gloo on this CPU, and what is read of its lines."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.benchmark import all_benchmarks
from agents.facts import Reading, ReadingKind
from agents.facts.bench import SweepResult
from agents.probe import Output
from tests.agents.payloads.running import all_gone, finish, start, workers_of
from tests.sweeps import TYPICAL_US, Line, lines, printed
from webapp.diagnosis.compare.sweep import Standing, compare_sweep

pytestmark = pytest.mark.thorough  # they start processes

BENCHMARK = all_benchmarks()["bench.nccl_sweep"]
SMALL = ("--device", "cpu", "--sizes", "4K,64K", "--row-seconds", "0.02", "--stall-seconds", "3")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it lies on a target."""
    path = tmp_path_factory.mktemp("shipped") / "program"
    path.write_bytes(BENCHMARK.payload_source())
    return path


def _read(text: str) -> Reading[Any]:
    reading, *_ = BENCHMARK.parse(Output(text))
    return reading


def _result(text: str) -> SweepResult:
    reading = _read(text)
    assert isinstance(reading.value, SweepResult), reading.detail
    return reading.value


@pytest.mark.parametrize("argv", ["--weights 1,2", "--weights=-1,1,1", "--simulate-fault slow", "--sizes 12Q"])
def test_what_makes_no_sense_is_refused(program: Path, argv: str) -> None:
    said, _, err = finish(start(program, *argv.split(), isolated=True))
    assert said[0]["error"]
    assert said[0]["fix"]
    assert err == ""


# --- for real, over gloo ------------------------------------------------------------------------------


@pytest.mark.service
def test_the_slow_arm_is_found_and_the_hung_and_the_wrong_are_out(program: Path) -> None:
    """NCCL's variables mean nothing to gloo, so every arm that is not played with is the same."""
    pytest.importorskip("torch")
    faults = "slow:algo_tree,wrong:proto_ll,hang:proto_simple"
    arms = "algo_ring,algo_tree,proto_ll,proto_simple"
    more = ("--arms", arms, "--simulate-fault", faults, "--seed", "7", "--weights", "3,1")
    said, out, err = finish(start(program, *SMALL, *more))
    assert err == ""
    assert said[-1] == {"end": True}
    assert _read(out).kind is ReadingKind.NOT_RUN  # a try on a CPU is no evidence
    tries = Counter(line["arm"] for line in said if line.get("outcome") and line["block"])
    assert tries == {"baseline": 5, "algo_ring": 5, "algo_tree": 5, "proto_ll": 1, "proto_simple": 1}
    found = compare_sweep(_result(_as_if_measured(said)), alpha=0.01)
    standing = {e.arm.name: e.standing for e in found.arms}
    # What a busy CPU's times tell apart is chance; the analysis itself is tested on given times.
    assert standing.keys() == {"algo_ring", "algo_tree", "proto_ll", "proto_simple"}
    assert standing["algo_tree"] in {Standing.SLOWER, Standing.ALIKE}
    assert (standing["proto_ll"], standing["proto_simple"]) == (Standing.WRONG, Standing.HANG)
    assert found.recommended is None or found.recommended.arm.name == "algo_ring"
    assert found.weights == ((4096, 0.75), (65536, 0.25))


def _as_if_measured(said: list[Line]) -> str:
    """The same lines as if a GPU's clock had timed them, for the analysis alone."""
    kept = [line for line in said if not line.get("simulated")]
    kept[0]["environment"].update(device="cuda", argv="")
    return printed([line | {"timing": "device"} if "time_us" in line else line for line in kept])


@pytest.mark.service
def test_only_whole_blocks_fit_in_the_limit_and_each_is_drawn_anew(program: Path) -> None:
    pytest.importorskip("torch")
    more = ("--arms", "algo_ring,algo_tree", "--repeats", "90", "--limit", "12", "--seed", "11")
    began = time.monotonic()
    said, out, _ = finish(start(program, *SMALL, *more))
    # Torch is loaded outside the limit, in each of its processes; ninety blocks take minutes.
    assert time.monotonic() - began < 12 + 60
    whole = [line["block"] for line in said if line.get("whole")]
    assert 0 < len(whole) < 90
    if said[-1] == {"end": True}:  # else a block took longer than the one before it, and is cut
        assert any("repeats fit in the time" in line.get("note", "") for line in said)
    result = _result(_as_if_measured(said))
    assert {row.block for row in result.rows} == set(whole)
    orders = {b: [t["arm"] for t in said if t.get("outcome") and t["block"] == b] for b in whole}
    assert all(sorted(order) == sorted(orders[1]) for order in orders.values())
    assert len(whole) < 6 or len({tuple(order) for order in orders.values()}) > 1
    assert _read(out).kind is ReadingKind.NOT_RUN


@pytest.mark.service
def test_without_p2p_every_arm_is_and_nothing_of_it_is_tried(program: Path) -> None:
    pytest.importorskip("torch")
    arms = ("--no-p2p", "--arms", "p2p_off,p2p_any_distance,algo_ring", "--repeats", "1")
    said, _, err = finish(start(program, *SMALL, *arms))
    assert err == ""
    (plan,) = (line["plan"] for line in said if "plan" in line)
    assert list(plan["arms"]) == ["baseline", "algo_ring"]
    settings = {line["arm"]: line["settings"] for line in said if "outcome" in line}
    assert settings == {"baseline": "NCCL_P2P_DISABLE=1", "algo_ring": "NCCL_P2P_DISABLE=1 NCCL_ALGO=Ring"}


@pytest.mark.service
@pytest.mark.parametrize("how", ["input closed", "watcher killed"])
def test_nothing_is_left_when_it_is_ended(program: Path, how: str) -> None:
    pytest.importorskip("torch")
    process = start(program, *SMALL, "--simulate-fault", "hang:algo_ring", "--stall-seconds", "60")
    assert process.stdin
    assert process.stdout
    while b'"outcome"' not in process.stdout.readline():  # the first try has ended
        pass
    workers = workers_of(process, 3)  # a leader and two ranks
    if how == "input closed":
        process.stdin.close()
    else:
        os.kill(process.pid, signal.SIGKILL)
    said, _, err = finish(process)
    assert all_gone(workers)
    assert err == ""
    if how != "watcher killed":
        assert "stopped" in said[-1]


# --- what is read -------------------------------------------------------------------------------------


def test_a_whole_sweep_is_read_whole() -> None:
    reading = _read(printed(lines(blocks=5)))
    result = _result(printed(lines(blocks=5)))
    assert reading.complete
    assert (result.blocks, result.ranks, result.seed) == (5, 2, 1)
    assert result.arms[0].name == "baseline"
    assert len(result.rows) == 5 * len(result.arms) * len(TYPICAL_US)
    assert result.environment["nccl"] == "2.28.9"
    assert sum(share for _, share in result.weights) == pytest.approx(1)


def test_the_first_try_counts_for_nothing() -> None:
    assert {row.block for row in _result(printed(lines(blocks=2))).rows} == {1, 2}


@pytest.mark.parametrize("outcome", ["hang", "wrong", "failed"])
def test_the_worst_try_of_an_arm_is_its_outcome(outcome: str) -> None:
    result = _result(printed(lines(outcomes={"proto_ll": outcome})))
    (arm,) = (arm for arm in result.arms if arm.name == "proto_ll")
    assert arm.outcome == outcome
    assert arm.why


def test_a_block_that_was_cut_is_left_out() -> None:
    said = lines(blocks=3)
    cut = [line for line in said if line != {"block": 3, "whole": True, "seconds": 21.0}][:-1]
    reading = _read(printed([*cut, {"stopped": "the time limit was reached"}]))
    assert reading.value
    assert reading.value.blocks == 2
    assert reading.missing == ("the end: the time limit was reached",)


def test_no_whole_block_is_no_measurement() -> None:
    reading = _read(printed([*lines()[:12], {"stopped": "standard input was closed"}]))
    assert reading.kind is ReadingKind.UNREADABLE
    assert "standard input was closed" in reading.detail


def test_a_baseline_that_is_not_right_compares_nothing() -> None:
    unusable = {"verdict": "unusable", "why": "without any setting: hang, nothing came back"}
    reading = _read(printed([*lines()[:3], unusable, {"end": True}]))
    assert reading.kind is ReadingKind.UNSUPPORTED
    assert "hang" in reading.detail


@pytest.mark.parametrize("change", [lambda t: t.replace("\n", "\r\n"), lambda t: f"\ufeffmotd\n\n{t}\ntrailing words"])
def test_line_ends_and_words_around_it_change_nothing(change: Any) -> None:
    whole, dressed = (_result(t) for t in (printed(lines()), change(printed(lines()))))
    assert [(r.arm, r.block, r.time_us) for r in whole.rows] == [(r.arm, r.block, r.time_us) for r in dressed.rows]


def test_a_log_pasted_twice_is_one_sweep() -> None:
    text = printed(lines())
    assert len(_result(text + text).rows) == len(_result(text).rows)


@pytest.mark.parametrize(
    "settings", [{"PATH": "x"}, {"NCCL_ALGO": "$(reboot)"}, {"NCCL_ALGO": "a\nb"}, {"NCCL_X Y": "1"}]
)
def test_what_nobody_may_paste_into_a_shell_is_no_arm(settings: dict[str, str]) -> None:
    said = lines()
    said[1]["plan"]["arms"] = {"baseline": {}, "algo_ring": settings}
    assert [arm.name for arm in _result(printed(said)).arms] == ["baseline"]


def test_a_huge_sweep_is_read_in_time() -> None:
    began = time.process_time()
    result = _result(printed(lines(blocks=400)))
    assert result.blocks == 400
    assert time.process_time() - began < 20


KEYS = [*("arm", "block", "size_bytes", "time_us", "timing", "outcome"), "plan", "whole", "verdict"]
ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
LIKELY = st.sampled_from(["baseline", "algo_ring", "device", "right", "hang", 1, 12288, 7.5, True])


@settings(max_examples=60)
@given(
    st.lists(st.dictionaries(st.sampled_from(KEYS), ANY | LIKELY, max_size=9), max_size=8),
    st.dictionaries(st.sampled_from(["arms", "sizes", "weights", "seed", "ranks"]), ANY, max_size=5),
)
def test_no_line_makes_the_reader_or_the_analysis_raise(junk: list[Line], plan: dict[str, Any]) -> None:
    said = lines(blocks=5)
    said[1:2] = [{"plan": said[1]["plan"] | plan}]
    for text in (printed([*said[:30], *junk, *said[30:]]), printed([said[0], *junk])):
        result = _read(text).value
        if result:
            assert all(0 < row.time_us < 1e10 for row in result.rows)
            compare_sweep(result)
            json.dumps([effect.ratio for effect in compare_sweep(result).arms], allow_nan=False)
