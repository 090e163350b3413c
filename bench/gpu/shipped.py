"""Programs as they are shipped, run on this machine: used by the scripts beside this one."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agents.benchmark import all_benchmarks  # noqa: E402


def lines_of(benchmark: str, *argv: str, keep: Path | None = None) -> list[dict[str, Any]]:
    """What it prints. Standard input stays open meanwhile, as the program wants. keep: a file for it."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        program.write_bytes(all_benchmarks()[benchmark].payload_source())
        process = subprocess.Popen([sys.executable, str(program), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout
        out = process.stdout.read()
        process.wait()
    if keep:
        keep.write_bytes(out)
    return [json.loads(line) for line in out.splitlines()]
