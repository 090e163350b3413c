"""Payloads as they run on a target: shipped, started, read to their end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT_S, wait_until


def start(program: Path, *argv: str, isolated: bool = False) -> subprocess.Popen[bytes]:
    """isolated: without any installed package. Standard input stays open."""
    return subprocess.Popen(
        [sys.executable, *(["-I", "-S"] if isolated else []), str(program), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[list[dict[str, Any]], str, str]:
    """Its lines, its raw output and standard error."""
    assert process.stdout
    assert process.stderr
    out, err = process.stdout.read().decode(), process.stderr.read().decode()
    process.wait(LIMIT_S)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
    return [json.loads(line) for line in out.splitlines()], out, err


def descendants(pid: int) -> set[int]:
    found = {int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return found.union(*(descendants(child) for child in found))


def workers_of(process: subprocess.Popen[bytes], least: int) -> set[int]:
    """Its descendants, once there are so many."""
    wait_until(lambda: len(descendants(process.pid)) >= least)
    return descendants(process.pid)


def all_gone(pids: set[int]) -> bool:
    """Once they have ended; one that only waits to be reaped has. An AssertionError when they stay."""
    wait_until(lambda: not any(map(_runs, pids)))
    return True


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
