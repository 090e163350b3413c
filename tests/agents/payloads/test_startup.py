"""What every program does before, while and after it measures, with tools of NVIDIA's that we play."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import ReadingKind
from agents.facts.bench import GpuTelemetry
from agents.parsing.copy_lines import SCHEMA
from agents.probe import Output
from agents.telemetry import reading
from tests.agents.payloads.running import all_gone, descendants
from tests.waiting import LIMIT_S

pytestmark = pytest.mark.thorough  # they start processes

SMI = """\
#!/bin/sh
case "$1" in
*compute-apps*) cat "$(dirname "$0")/processes" ;;
*uuid*) printf '0, GPU-aa\\n1, GPU-bb\\n' ;;
*memory.used*) cat "$(dirname "$0")/memory" ;;
esac
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shipped") / "program"
    path.write_bytes(all_benchmarks()["bench.copy"].payload_source())
    return path


@pytest.fixture
def smi(tmp_path: Path) -> Path:
    """A folder for PATH with an nvidia-smi that prints the files `processes` and `memory`."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(SMI)
    tool.chmod(0o755)
    (tmp_path / "processes").write_text("")
    (tmp_path / "memory").write_text("0, 4\n1, 4\n")
    return tmp_path


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for LD_LIBRARY_PATH with an NVML."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("stand_in_nvml.c")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return folder


def _start(program: Path, code: str, **environment: str) -> subprocess.Popen[str]:
    """Runs code with the modules of the shipped program."""
    before = f"import sys; sys.path.insert(0, {str(program)!r})\n"
    return subprocess.Popen(
        [sys.executable, "-c", before + code],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _said(program: Path, code: str, **environment: str) -> list[dict[str, Any]]:
    out, _ = _start(program, code, **environment).communicate(timeout=LIMIT_S)
    return [json.loads(line) for line in out.splitlines()]


# --- busy GPUs ----------------------------------------------------------------------------------------

BUSY = """
from lines import Refusal, report, row_of, say
from machine import refuse_when_busy, say_header
try:
    refuse_when_busy(force=%s)
    say_header("peerpath.copy/1", {}, [])
    report(row_of("same", 0, 0, 12), "device", "graph", [1.0] * 20)
except Refusal as refusal:
    say(**refusal.line)
"""


@pytest.mark.parametrize(
    ("processes", "memory", "who"),
    [
        ("41, GPU-bb, 30512, /usr/bin/python3\n", "0, 4\n1, 30600\n", "process 41 (python3, 30512"),
        ("7, GPU-aa, [N/A], a, b\n", "0, 4\n1, 4\n", "process 7 (a, b, GPU 0)"),
        ("", "0, 4\n1, 40960\n", "40960 MiB in use on GPU 1"),
    ],
)
def test_busy_gpus_are_refused_with_who_holds_them(
    program: Path, smi: Path, processes: str, memory: str, who: str
) -> None:
    (smi / "processes").write_text(processes)
    (smi / "memory").write_text(memory)
    path = f"{smi}:{os.environ['PATH']}"
    (refused,) = _said(program, BUSY % False, PATH=path)
    assert who in refused["error"]
    assert "--force" in refused["fix"]
    head, note, row = _said(program, BUSY % True, PATH=path)
    assert head["environment"]["beside_other_work"] is True
    assert who in note["note"]
    assert row["beside_other_work"] is True


def test_free_gpus_are_measured_without_a_word(program: Path, smi: Path) -> None:
    _, row = _said(program, BUSY % False, PATH=f"{smi}:{os.environ['PATH']}")
    assert "beside_other_work" not in row


# --- telemetry ----------------------------------------------------------------------------------------

WATCH = """
import time
from lines import say
from machine import say_header
from telemetry import sampled
with sampled(0.05):
    time.sleep(0.1)
    say_header("peerpath.copy/1", {}, [])
    time.sleep(%s)
say(end=True)
"""


@pytest.mark.parametrize(("busy", "power_w"), [(0, 60.0), (2, 60.0), (3, 300.0), (6, 300.0)])
def test_three_busy_looks_stand_for_the_work(busy: int, power_w: float) -> None:
    """Fewer of them say nothing of it, so that all looks count."""
    looks = [[0, 90, 300.0]] * busy + [[0, 0, 60.0]] * 10
    lines = [{"schema": SCHEMA, "environment": {}}, {"telemetry": ["gpu", "busy_percent", "power_w"], "every_s": 0.5}]
    lines += [{"at_s": 0.5 * n, "gpus": [row]} for n, row in enumerate(looks)]
    (gpu,) = reading(Output("\n".join(map(json.dumps, lines))), SCHEMA).value or ()
    assert gpu.power_w == power_w


def test_looks_at_the_gpus_come_between_the_rows(program: Path, nvml: Path) -> None:
    said = _said(program, WATCH % 2, LD_LIBRARY_PATH=str(nvml))
    looks = [line for line in said if "gpus" in line]
    assert len(looks) >= 6, "forty where nothing else runs"
    assert "schema" in said[0]
    assert said[-1] == {"end": True}
    at = [look["at_s"] for look in looks]
    assert at == sorted(at)
    found = reading(Output("\n".join(map(json.dumps, said))), SCHEMA)
    assert found.complete
    full = GpuTelemetry(
        "0",
        len(looks),
        power_w=312.4,
        power_max_w=312.4,
        busy_percent=97,
        memory_busy_percent=12,
        memory_used_mib=1234,
        sm_clock_mhz=1980,
        temperature_celsius=61,
        memory_clock_mhz=3201,
        pcie_gen=5,
        pcie_width=16,
        throttle_reasons=("software power cap", "hardware thermal slowdown"),
        throttled_percent=100,
        every_s=0.05,
    )
    assert found.value
    first, second = found.value  # the third does not answer
    assert first == full
    assert (second.power_w, second.throttled_percent, second.sm_clock_mhz) == (None, None, 1980)


def test_without_nvml_it_says_so_and_goes_on(program: Path) -> None:
    said = _said(program, WATCH % 0.3)
    assert said[-1] == {"end": True}
    found = reading(Output("\n".join(map(json.dumps, said))), SCHEMA)
    assert found.kind is ReadingKind.UNSUPPORTED
    assert "libnvidia-ml" in found.detail


def test_the_process_that_looks_dies_with_the_one_that_watches(program: Path, nvml: Path) -> None:
    process = _start(program, WATCH % 60, LD_LIBRARY_PATH=str(nvml))
    assert process.stdout
    process.stdout.readline()
    assert "telemetry" in process.stdout.readline()
    looking = descendants(process.pid)
    assert len(looking) == 1
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=LIMIT_S)
    assert all_gone(looking)


# --- the header ---------------------------------------------------------------------------------------

HEAD = """
from machine import program, say_header
argv = %r
say_header("peerpath.copy/1", {"device": "cuda", "driver": %r, **program(argv)}, argv)
"""


def _fingerprint(program: Path, argv: list[str], driver: str = "580.1", **settings: str) -> str:
    (head,) = _said(program, HEAD % (argv, driver), **settings)
    environment = head["environment"]
    assert set(environment["fingerprint_of"].split(", ")) >= {"driver", "measuring", "settings"}
    return str(environment["fingerprint"])


def test_the_fingerprint_is_that_of_what_has_to_be_equal(program: Path) -> None:
    one = _fingerprint(program, ["--sizes", "12K", "--limit", "60"])
    assert one == _fingerprint(program, ["--limit=90", "--sizes", "12K", "--telemetry-seconds", "1"])
    others = {
        _fingerprint(program, ["--sizes", "48K"]),
        _fingerprint(program, ["--sizes", "12K"], driver="590.1"),
        _fingerprint(program, ["--sizes", "12K"], NCCL_P2P_DISABLE="1"),
    }
    assert len(others | {one}) == 4


# --- killed at any moment -----------------------------------------------------------------------------


@pytest.mark.service
def test_killed_at_any_moment_nothing_is_left(program: Path) -> None:
    pytest.importorskip("torch")
    moments = random.Random(7)
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, str(program), "--device", "cpu"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0.02, 1.5))
        started = descendants(process.pid)
        process.kill()
        process.wait()
        assert process.stdin
        process.stdin.close()
        assert all_gone(started)
