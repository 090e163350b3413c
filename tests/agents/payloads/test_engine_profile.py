"""An engine is asked for its own profile in the middle of requests; the trace is read where it lies."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import ReadingKind
from agents.facts.bench import Profile
from agents.probe import Output
from tests.agents.payloads.engine_server import Engine, serving
from tests.agents.payloads.running import finish, start
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.thorough  # they start processes
BENCHMARK = all_benchmarks()["bench.engine_profile"]
# One decode step: name, microseconds, and what passes until the next one begins.
LAYER = (("rmsnorm", 5, 6), ("flash_fwd_splitkv", 20, 22), ("ncclDevKernel_AllReduce_Sum", 30, 30))
MOE = (("fused_moe_kernel", 40, 45), ("ncclDevKernel_AllReduce_Sum", 30, 32))
STEP = (*LAYER, *MOE, *LAYER, *MOE, ("argmax_kernel", 3, 53))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shipped") / "program"
    path.write_bytes(BENCHMARK.payload_source())
    return path


@contextmanager
def another_engine(home: Path, port: int, option: str = "--profiler-config") -> Iterator[None]:
    """A process whose command line is that of a vLLM at this port, with its folder of traces."""
    words = ("vllm", "serve", "--port", str(port), f"{option}.torch_profiler_dir", "~/traces")
    asleep = (sys.executable, "-c", "import time; time.sleep(60)", *words)
    with subprocess.Popen(asleep, env={"HOME": str(home)}) as process:
        yield
        process.kill()


def trace(steps: int, *, padding: int = 0) -> dict[str, Any]:
    """As Kineto writes it. padding: work of the CPU beside each kernel, which is most of a real file."""
    at, events = 1_700_000_000_000.0, []
    for name, took, gap in STEP * steps:
        about = {"ph": "X", "cat": "kernel", "name": name, "ts": at, "dur": took}
        events.append({**about, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}})
        op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm}],", "ts": at, "dur": 1, "args": {}}
        events += [op] * padding
        at += gap
    return {"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": events}


def run(program: Path, engine: Engine, *argv: str) -> tuple[list[dict[str, Any]], tuple[Any, Any]]:
    arguments = ("--url", engine.url, "--steps", "5", "--write-seconds", "8", *argv)
    lines, out, err = finish(start(program, *arguments, isolated=True))
    assert err == ""
    profile, times = BENCHMARK.parse(Output(out))
    return lines, (profile, times)


def test_a_step_gets_its_parts_and_nothing_stays_behind(program: Path) -> None:
    with serving(Engine(trace=trace(6), step_s=0.01)) as engine:
        lines, (profile, times) = run(program, engine, "--concurrency", "2")
        folder = engine.trace_folder
    assert profile.kind is ReadingKind.KNOWN
    # 2 × (20) attention, 2 × 40 MoE, 4 × 30 NCCL, 2 × 5 + 3 other; the rest of 323 µs are gaps.
    parts: Profile = profile.value
    us = [1000 * ms for ms in (parts.attention_ms, parts.moe_ms, parts.nccl_ms, parts.other_ms)]
    assert us == pytest.approx([40, 80, 120, 13])
    assert 1000 * parts.gaps_ms == pytest.approx(323 - 40 - 80 - 120 - 13)
    assert "of rank 0; at 2 at once" in profile.detail
    assert times.value.kernels == 6 * len(STEP)
    assert engine.asked.index("/start_profile") > 1  # in the middle of requests
    assert engine.asked[-1] == "/stop_profile"
    assert folder
    assert not folder.exists()
    assert lines[-1] == {"end": True}


def test_a_trace_larger_than_a_piece_is_read_piece_by_piece(program: Path) -> None:
    whole = trace(40, padding=150)
    with serving(Engine(trace=whole, step_s=0.01)) as engine:
        _, (profile, times) = run(program, engine)
    assert times.value.kernels == 40 * len(STEP)
    assert 1000 * profile.value.nccl_ms == pytest.approx(120)


def test_an_engine_without_its_profiler_says_how_to_start_it(program: Path) -> None:
    with serving(Engine(step_s=0.01)) as engine:
        lines, (profile, _) = run(program, engine)
    assert profile.kind is ReadingKind.NOT_RUN
    assert "--profiler-config" in lines[-1]["fix"]
    assert engine.asked.count("/stop_profile") == 0


def test_a_profiler_that_wants_its_own_key_says_so(program: Path) -> None:
    with serving(Engine(trace=trace(6), step_s=0.01, admin_key=True)) as engine:
        lines, _ = run(program, engine)
    assert "HTTP 401" in lines[-1]["error"]
    assert "--admin-api-key" in lines[-1]["fix"]
    assert engine.asked.count("/stop_profile") == 0


def test_a_trace_that_cannot_be_found_says_how_to_bring_it(program: Path, tmp_path: Path) -> None:
    with (
        serving(Engine(trace=trace(6), step_s=0.01, hides=tmp_path / "hidden")) as engine,
        another_engine(tmp_path, engine.port),
    ):
        lines, _ = run(program, engine, "--write-seconds", "2")
    assert "upload" in lines[-1]["fix"]


def test_the_folder_that_a_person_names_is_read_and_left(program: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.trace.json"
    old.write_text("{}")
    with serving(Engine(trace=trace(6), step_s=0.01, hides=tmp_path)) as engine:
        _, (profile, _) = run(program, engine, "--trace-dir", str(tmp_path))
    assert profile.kind is ReadingKind.KNOWN
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("option", ["--profiler-config", "--profiler_config"])
def test_the_folder_that_an_engines_command_line_names_is_read(program: Path, tmp_path: Path, option: str) -> None:
    """vLLM takes - and _ in it, and the home of its own account."""
    with (
        serving(Engine(trace=trace(6), step_s=0.01, hides=tmp_path / "traces")) as engine,
        another_engine(tmp_path, engine.port, option),
    ):
        _, (profile, _) = run(program, engine)
    assert profile.kind is ReadingKind.KNOWN


@pytest.mark.parametrize(("ports", "read"), [((1, 0), True), ((1, 2), False)])
def test_a_trace_of_another_engine_is_never_taken(
    program: Path, tmp_path: Path, ports: tuple[int, int], read: bool
) -> None:
    """ports 0: the engine's own. Without a command line that names it, it may be either of two that wrote."""
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    with (
        serving(Engine(trace=trace(6), step_s=0.01, hides=own / "traces", also=theirs / "traces")) as engine,
        another_engine(theirs, ports[0] or engine.port),
        another_engine(own, ports[1] or engine.port),
    ):
        lines, (profile, _) = run(program, engine)
    assert (profile.kind is ReadingKind.KNOWN) is read
    assert read or "--trace-dir" in lines[-1]["fix"]


def test_a_trace_that_is_there_is_only_read(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "rank0.pt.trace.json"
    path.write_text(json.dumps(trace(6)))
    _, (profile, _) = run(program, Engine(port=9), "--read", str(path))
    assert 1000 * profile.value.nccl_ms == pytest.approx(120)
    path.write_text(path.read_text()[:-400])
    lines, (cut, _) = run(program, Engine(port=9), "--read", str(path))
    assert "it is cut" in lines[-3]["note"]
    assert cut.missing or cut.kind is ReadingKind.NOT_RUN


def test_the_profiler_is_switched_off_when_nobody_listens_any_more(program: Path) -> None:
    with serving(Engine(trace=trace(6), step_s=0.05)) as engine:
        process = start(program, "--url", engine.url, "--steps", "500")
        wait_until(lambda: "/start_profile" in engine.asked)
        assert process.stdin
        process.stdin.close()
        process.wait(LIMIT_S)
        assert engine.asked[-1] == "/stop_profile"
    for stream in (process.stdout, process.stderr):
        assert stream
        stream.close()
