"""Payloads as they run on a target: shipped, started, read to their end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


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
    process.wait(30)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
    return [json.loads(line) for line in out.splitlines()], out, err


def descendants(pid: int) -> set[int]:
    found = {int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return found.union(*(descendants(child) for child in found))


def all_gone(pids: set[int]) -> bool:
    """Whether they end within two seconds; one that only waits to be reaped has ended."""
    for _ in range(100):
        if not any(map(_runs, pids)):
            return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
