"""Runs and intake once more, on PostgreSQL: locks and JSON columns behave differently there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILES = (
    "runs/test_lifecycle",
    "records/test_intake",
    "records/test_reading_codec",
    "records/test_search",
    "operations/test_purge",
)


@pytest.mark.service
def test_runs_and_intake_hold_on_postgresql(postgresql_url: str, tmp_path: Path) -> None:
    files = [f"tests/webapp/{name}.py" for name in FILES]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env=os.environ | {"PEERPATH_DATABASE_URL": postgresql_url, "PEERPATH_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
