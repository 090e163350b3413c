"""Benchmarks by the real agent; the interpreter is a program of ours that prints what a payload would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from agents.benchmark import all_benchmarks
from tests.waiting import wait_for_end, wait_until
from tests.worker.conftest import alive
from webapp.accounts.models import User
from webapp.records.models import Run, RunState, Target
from webapp.runs import lifecycle
from webapp.runs.manual_run import by_hand
from worker import tasks

HEAD = '{"schema": "peerpath.copy/1", "environment": {"device": "cpu", "torch": "2.13.0"}}'
ROW = (
    '{"path": "same", "source": "0", "destination": "0", "size_bytes": 12288, "timing": "device",'
    ' "time_us": 0.9, "samples": 200}'
)
LOOKS = """{"telemetry": ["gpu", "power_w", "busy_percent"], "every_s": 0.4}
{"at_s": 0.4, "gpus": [[0, 80.0, 0.0]]}"""
PRINTS = f"cat <<'ROWS'\n{HEAD}\n{ROW}\nROWS\n"
END = "echo '{\"end\": true}'\n"


def measure(target: Target, user: User, interpreter: Path) -> Run:
    arguments = {"INTERPRETER": str(interpreter)}
    return lifecycle.queue_benchmark(target.session, target, user, "bench.copy", arguments)


def test_a_benchmark_is_stored_and_read(here: Target, admin: User, tools: Callable[[str, str], Path]) -> None:
    run = measure(here, admin, tools("py", PRINTS + END))
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.problem) == (RunState.SUCCEEDED, "")
    offered = by_hand(all_benchmarks()["bench.copy"], ())
    assert offered
    assert run.script_sha256 == offered.sha256  # what the page showed before
    evidence = run.evidence.get()
    assert evidence.reader == "bench.copy"
    reading = evidence.readings.get(fact_id="bench.copy")
    assert reading.kind == "known"
    assert reading.value is not None
    assert reading.value["rows"][0]["time_us"] == 0.9
    assert bytes(evidence.body) == b"".join(bytes(c.body) for c in run.chunks.all())


def test_a_benchmark_that_breaks_keeps_what_it_measured_and_says_so(
    here: Target, admin: User, tools: Callable[[str, str], Path]
) -> None:
    run = measure(here, admin, tools("py", PRINTS + "echo out of memory >&2\nexit 7"))
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert run.state == RunState.PARTLY
    assert "exit code 7" in run.problem
    assert "out of memory" in run.problem
    assert run.evidence.get().readings.get(fact_id="bench.copy").missing


def test_a_benchmark_that_would_not_measure_says_why(
    here: Target, admin: User, tools: Callable[[str, str], Path]
) -> None:
    said = '{"error": "GPU 0 is busy", "fix": "stop the engine"}'
    run = measure(here, admin, tools("py", f"cat <<'ROWS'\n{HEAD}\n{said}\nROWS\nexit 3"))
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert run.problem == "Nothing was measured: GPU 0 is busy; stop the engine."
    assert run.evidence.get().readings.get(fact_id="bench.copy").value is None


@pytest.mark.parametrize(
    ("prints", "why"),
    [
        ("", "it printed nothing"),
        ("echo all is well", "no measurement in the output: all is well"),
        (f"cat <<'ROWS'\n{HEAD}\n{{\"end\": true}}\nROWS", "no measurement in the output"),
        (f"cat <<'ROWS'\n{HEAD}\n{LOOKS}\n{{\"end\": true}}\nROWS", "no measurement in the output"),
    ],
)
def test_a_benchmark_that_measured_nothing_has_not_succeeded(
    here: Target, admin: User, tools: Callable[[str, str], Path], prints: str, why: str
) -> None:
    run = measure(here, admin, tools("py", f"{prints}\necho odd >&2\nexit 0"))
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert run.problem.startswith(f"The program ended with exit code 0, but nothing was measured: {why}")
    assert run.problem.endswith("odd")
    finished = here.session.events.filter(kind="run_finished").get()
    assert finished.data["state"] == "failed"  # what notices and the API tell
    telemetry = run.evidence.filter(readings__fact_id="bench.telemetry", readings__kind="known")
    assert telemetry.exists() is (LOOKS in prints)


def test_a_benchmark_that_broke_before_it_measured_claims_nothing(
    here: Target, admin: User, tools: Callable[[str, str], Path]
) -> None:
    run = measure(here, admin, tools("py", "echo Traceback; exit 1"))
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "It had measured nothing." in run.problem


def test_a_cancelled_benchmark_is_ended_there_and_the_next_one_starts(
    here: Target, admin: User, tools: Callable[[str, str], Path], tmp_path: Path
) -> None:
    mark = tmp_path / "pid"
    hanging = measure(here, admin, tools("py", f"{PRINTS}echo $$ > {mark}; exec sleep 600"))
    waiting = measure(here, admin, tools("py2", PRINTS + END))

    def work() -> None:
        tasks.run(str(hanging.pk))
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: mark.exists() and mark.read_text().strip())
    tasks.run(str(waiting.pk))
    assert Run.objects.get(pk=waiting.pk).state == RunState.QUEUED
    assert lifecycle.request_cancel(hanging, admin)
    wait_for_end(thread)
    hanging.refresh_from_db()
    assert hanging.state == RunState.CANCELLED
    assert hanging.evidence.get().readings.get(fact_id="bench.copy").kind == "known"
    wait_until(lambda: not alive(int(mark.read_text())))
    tasks.run(str(waiting.pk))
    assert Run.objects.get(pk=waiting.pk).state == RunState.SUCCEEDED


def test_a_benchmark_nobody_has_is_refused(here: Target, admin: User) -> None:
    for name in ("bench.no_such", "bench.serving"):
        with pytest.raises(ValueError, match="no such benchmark"):
            lifecycle.queue_benchmark(here.session, here, admin, name)


def test_a_reference_tool_runs_when_this_machines_probe_found_it(
    here: Target, admin: User, tools: Callable[[str, str], Path]
) -> None:
    tools("nvidia-smi", "[ \"$1\" != -L ] || echo 'GPU 0: NVIDIA H200'")
    tools(
        "all_reduce_perf",
        "echo '# nThread 1 nGpus 2 graph: 20'\necho '12288 6144 bfloat16 sum -1 7.50 1.64 1.64 0 7.48 1.64 1.64 0'",
    )
    early = lifecycle.queue_benchmark(here.session, here, admin, "bench.nccl_tests")
    tasks.run(str(early.pk))
    early.refresh_from_db()
    assert early.state == RunState.FAILED
    assert "was not found on this machine" in early.problem
    probing = lifecycle.queue_probes(here.session, here, admin, ["guest.reference_tools"])
    tasks.run(str(probing.pk))
    run = lifecycle.queue_benchmark(here.session, here, admin, "bench.nccl_tests")
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.problem) == (RunState.SUCCEEDED, "")
    without, chosen = run.evidence.get().readings.order_by("pk")
    assert without.value
    assert chosen.value
    assert (without.value["p2p"], chosen.value["p2p"]) == (False, None)
