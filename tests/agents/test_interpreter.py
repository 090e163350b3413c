"""Payloads run by a Python inside a container, with a stand-in for the container runtime."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.agent import Reason
from agents.benchmark import all_benchmarks
from agents.collector import build_script
from agents.facts import Reading, View
from agents.interpreter import Interpreter, chosen_of, interpreter_of
from agents.local import LocalAgent
from agents.probes import all_probes
from agents.raw_reading import read_raw
from agents.ssh import SshAgent
from agents.supervision import sweep_script, wrap_payload
from tests.agents.asking import NONCE, run, run_payload
from tests.agents.conftest import Sshd
from tests.waiting import OWN, wait_until

PROGRAM = "import os, sys; print(os.environ['PEERPATH_RUN'], os.getcwd(), *sys.argv[1:]); sys.exit(5)"
STUBBORN = f"""
import os, signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("started", flush=True)
subprocess.Popen(["sleep", "4741.{OWN}"], start_new_session=True)
time.sleep(600)
"""


def test_texts_name_interpreters() -> None:
    assert interpreter_of("/opt/venv/bin/python3") == Interpreter("/opt/venv/bin/python3")
    assert interpreter_of("docker:vllm-1:/usr/bin/python3.12") == Interpreter("/usr/bin/python3.12", "docker", "vllm-1")
    assert interpreter_of("podman:a.b_c:/opt/v/bin/python").engine == "podman"


@pytest.mark.parametrize(
    "text",
    [
        "docker:$(reboot):/usr/bin/python3",
        "docker:a b:/usr/bin/python3",
        "docker:-rm:/usr/bin/python3",
        "docker:name:python3",
        "docker:name:/usr/bin/python3; reboot",
        "docker:name:/usr/bin/bash",
        "docker:name\n:/usr/bin/python3",
        "docker:",
        "podman:é:/usr/bin/python3",
        f"docker:{'n' * 129}:/usr/bin/python3",
    ],
)
def test_a_container_without_a_safe_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="docker:NAME"):
        wrap_payload(b"", [], interpreter=text, timeout_s=1)
    with pytest.raises(ValueError, match="docker:NAME"):
        sweep_script(text)


def test_of_several_the_machines_own_and_newest_is_chosen() -> None:
    inside, here, cpu = ("docker:e:/usr/bin/python3 2.9.0", "/v/bin/python 2.8.0", "/c/python3 2.9+cpu")
    assert chosen_of([cpu, here, inside]) == "/v/bin/python"
    assert chosen_of([cpu, inside]) == "docker:e:/usr/bin/python3"
    assert chosen_of([cpu]) == "/c/python3"
    assert chosen_of(["/old/bin/python 2.1", here]) == "/v/bin/python"
    assert chosen_of(["/bin/sh 1.0", "docker:a b:/usr/bin/python3 2.0", "x"]) == ""
    assert chosen_of([]) == ""


# --- with the stand-in --------------------------------------------------------------------------------


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a `docker` on PATH with one container, "engine-1"."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    stand_in = Path(__file__).with_name("stand_in_docker.py")
    program.write_text(f'#!/bin/sh\nSTAND_IN={tmp_path} exec {sys.executable} {stand_in} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "containers").write_text('engine-1 vllm/vllm-openai:v0.11 "vllm serve"\n')
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


INSIDE = f"docker:engine-1:{sys.executable}"


def _left_in_tmp(mark: str) -> list[Path]:
    return [path for path in Path("/tmp").glob("peerpath.*") if mark.removeprefix("x") in path.name]


@pytest.mark.service
def test_a_payload_runs_inside_and_leaves_nothing(docker: Path) -> None:
    ending, raw = run_payload(LocalAgent(), PROGRAM, ["it's", "$HOME"], interpreter=INSIDE)
    mark, folder, *argv = raw.decode().split()
    assert (ending.exit_code, ending.reason) == (5, Reason.FINISHED)
    assert argv == ["it's", "$HOME"]
    assert mark.startswith("x")  # it was inside
    assert not Path(folder).exists()
    assert not _left_in_tmp(mark)


@pytest.mark.service
def test_a_container_that_is_gone_is_said(docker: Path) -> None:
    where = INSIDE.replace("engine-1", "engine-2")
    ending, raw = run_payload(LocalAgent(), PROGRAM, [], interpreter=where)
    assert (ending.exit_code, raw) == (1, b"")
    assert b"No such container: engine-2" in ending.stderr


@pytest.mark.service
def test_cancelling_ends_what_runs_inside(docker: Path, alive: Callable[[str], list[int]]) -> None:
    ending, raw = run_payload(
        LocalAgent(), STUBBORN, [], interpreter=INSIDE, cancelled=lambda: bool(alive(f"sleep 4741.{OWN}"))
    )
    assert raw == b"started\n"
    assert (ending.reason, ending.leftover) == (Reason.CANCELLED, False)
    assert not alive(f"sleep 4741.{OWN}")
    assert not [pid for pid in (docker / "pids").read_text().split() if alive_pid(int(pid))]
    assert any(call.startswith("exec -i engine-1 sh -s -- ") for call in (docker / "calls").read_text().splitlines())


@pytest.mark.service
def test_a_lost_connection_ends_what_runs_inside(docker: Path, sshd: Sshd, alive: Callable[[str], list[int]]) -> None:
    sshd.stop()
    sshd.start(more=f"SetEnv PATH={os.environ['PATH']}")
    program = f"import subprocess; subprocess.run(['sleep', '4742.{OWN}'])"

    def lose_it() -> bool:
        if alive(f"sleep 4742.{OWN}"):
            sshd.stop()
        return False

    ending, _ = run_payload(SshAgent(sshd.spec()), program, interpreter=INSIDE, cancelled=lose_it, timeout_s=60)
    assert (ending.reason, ending.leftover) == (Reason.LOST, None)
    wait_until(lambda: not alive(f"sleep 4742.{OWN}"))  # its wrapper gives it five seconds to stop by itself


def _asked(name: str) -> tuple[str, Reading[Any]]:
    """What a probe's own script prints on this machine, and its reading."""
    script = build_script([all_probes()[name]], role=View.GUEST, nonce=NONCE)
    _, raw = run(LocalAgent(), script)
    found = read_raw(raw, role=View.GUEST)
    (reading,) = (reading for item in found.items for reading in item.readings)
    return raw.decode(), reading


@pytest.mark.service
def test_the_probe_finds_the_python_of_an_engines_container(docker: Path) -> None:
    """Only engines are asked, and none whose name could do something."""
    with (docker / "containers").open("a") as listed:
        listed.write("redis-1 redis:8 redis-server\n$(touch${IFS}owned) sglang:1 python3\n")
        listed.write("-v vllm:1 vllm\n")
    (docker / "inside").mkdir()
    python = docker / "inside" / "python3"
    python.write_text('#!/bin/sh\n[ -n "$2" ] && echo /usr/bin/python3.12 2.9.0+cu129\n')
    python.chmod(0o755)
    _, reading = _asked("guest.container_python")
    assert reading.value == "docker:engine-1:/usr/bin/python3.12 2.9.0+cu129"
    assert chosen_of([reading.value]) == "docker:engine-1:/usr/bin/python3.12"
    executed = [c for c in (docker / "calls").read_text().splitlines() if c.startswith("exec")]
    assert {call.split()[1] for call in executed} == {"engine-1"}


@pytest.mark.service
def test_the_probe_finds_the_python_of_a_running_engine(tmp_path: Path) -> None:
    venv = tmp_path / "venv" / "bin" / "python3"
    venv.parent.mkdir(parents=True)
    venv.symlink_to(sys.executable)
    engine = subprocess.Popen([venv, "-c", "import time; time.sleep(60)", "vllm", "serve"])
    try:
        raw, _ = _asked("guest.python_with_torch")
    finally:
        engine.kill()
        engine.wait()
    assert re.search(rf"^\| {re.escape(str(tmp_path))}/venv/bin/python3 ", raw, re.M)


@pytest.mark.service
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_another_user_can_change_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    python.chmod(0o755)
    os.chown(python, 65534, 65534)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    raw, _ = _asked("guest.python_with_torch")
    assert f"| {python} ~\n" in raw
    assert not (tmp_path / "ran").exists()


def alive_pid(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.service
@pytest.mark.skipif(not shutil.which("shellcheck"), reason="no shellcheck on this machine")
@pytest.mark.parametrize(
    "script",
    [
        wrap_payload(b"x", ["it's"], interpreter="docker:engine-1:/usr/bin/python3", timeout_s=5),
        sweep_script("podman:a.b:/usr/bin/python3"),
        all_benchmarks()["bench.nccl_tests"].payload_source().decode(),
    ],
    ids=["run", "sweep", "reference tool"],
)
def test_what_is_sent_passes_shellcheck(script: str) -> None:
    done = subprocess.run(["shellcheck", "-s", "sh", "-"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
