"""A child that reads what others sent is limited by the kernel."""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import resource
from agents.limits import limit_this_process
limit_this_process(memory_bytes=300 << 20, cpu_s=1, open_files=10)
print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
"""


def _child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", CHILD + code], capture_output=True, text=True, check=False)


def test_memory_ends_as_an_error_in_the_child() -> None:
    child = _child("try:\n    bytearray(400 << 20)\nexcept MemoryError:\n    print('refused')")
    assert child.stdout.splitlines() == ["(0, 0) (10, 10)", "refused"]


def test_an_endless_child_is_ended_by_the_kernel() -> None:
    assert _child("while True: pass").returncode < 0


def test_a_lower_limit_stays() -> None:
    child = _child("limit_this_process(open_files=99); print(resource.getrlimit(resource.RLIMIT_NOFILE))")
    assert child.stdout.splitlines()[-1] == "(10, 10)"
