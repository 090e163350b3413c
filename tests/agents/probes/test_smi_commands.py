"""The shell snippets of these probes, run by sh with a stand-in for the NVIDIA tool on PATH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agents.probe import Command
from agents.probes.guest import driver_version, engine_flags, gpus, nccl_log


def _run(command: Command, path: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    search = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
    return subprocess.run(
        ["sh", "-c", command.whole],
        capture_output=True,
        text=True,
        env={"PATH": search, "LC_ALL": "C", **env},
        timeout=60,
        check=False,
    )


def _tool(folder: Path, name: str, body: str) -> Path:
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    return folder


def test_a_driver_that_does_not_know_a_field_is_asked_for_fewer(tmp_path: Path) -> None:
    body = """case $1 in
      *mig.mode*) echo 'Field "mig.mode.current" is not a valid field to query.'; exit 2 ;;
      --query-gpu=*) echo 'index, name'; echo '0, Tesla V100-PCIE-16GB' ;;
    esac"""
    path = _tool(tmp_path, "nvidia-smi", body)
    done = _run(gpus.probe.commands[0], path)
    assert (done.returncode, done.stdout) == (0, "index, name\n0, Tesla V100-PCIE-16GB\n")


def test_rows_beside_an_unreachable_gpu_survive_with_the_exit_code(tmp_path: Path) -> None:
    lost = "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error"
    path = _tool(tmp_path, "nvidia-smi", f"echo 'index, name'; echo '0, A40'; echo '{lost}'; exit 15")
    done = _run(gpus.probe.commands[0], path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (15, lost)


def test_the_module_answers_where_the_tool_fails(tmp_path: Path) -> None:
    path = _tool(tmp_path, "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    _tool(tmp_path, "modinfo", "echo 575.64.03")
    done = _run(driver_version.probe.commands[0], path)
    assert done.returncode == 9
    assert "575.64.03" in done.stdout or "NVRM version" in done.stdout


@pytest.mark.parametrize("ps_fails", [False, True])
def test_a_running_server_is_found_and_its_key_is_not_shown(ps_fails: bool, tmp_path: Path) -> None:
    path = _tool(tmp_path, "ps", "exit 127") if ps_fails else None
    server = subprocess.Popen(["sh", "-c", "sleep 20; :", "vllm serve", "--tp", "8", "--api-key", "Zq-not-for-you"])
    try:
        done = _run(engine_flags.probe.commands[0], path)
    finally:
        server.kill()
        server.wait()
    shown = [line for line in done.stdout.splitlines() if "sleep 20; :" in line]
    assert done.returncode == 0
    assert shown
    assert "--tp 8 --api-key ***" in shown[0]
    assert "Zq-not-for-you" not in done.stdout


def test_the_end_of_a_named_log_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "-a log.txt"
    log.write_text("NCCL version 2.27.3\n")
    command = nccl_log.probe.commands[0]
    assert _run(command, PEERPATH_NCCL_LOG=str(log)).stdout == "NCCL version 2.27.3\n"
    assert _run(command).returncode == 3
