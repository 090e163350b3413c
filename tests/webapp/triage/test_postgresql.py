"""The tests of this folder once more, on PostgreSQL: locks and JSON columns behave differently there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.mark.service
def test_runs_and_intake_hold_on_postgresql(postgresql_url: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "PEERPATH_DATABASE_URL": postgresql_url,
        "PEERPATH_DATA": str(tmp_path),
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not service"]
    done = subprocess.run(
        [*command, str(HERE)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
