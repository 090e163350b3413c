"""A name that is public when it is checked and this machine afterwards: a real resolver and name server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
APART = ["unshare", "--net", "--mount"]


def may_be_apart() -> bool:
    tools = all(shutil.which(tool) for tool in ("unshare", "ip", "mount"))
    return tools and subprocess.run([*APART, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.service
@pytest.mark.skipif(not may_be_apart(), reason="no namespaces of one's own for this user")
def test_a_webhook_goes_to_the_address_that_was_checked(tmp_path: Path) -> None:
    done = subprocess.run(
        [*APART, sys.executable, "-m", "tests.webapp.notices.rebinding", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    refused = "rebinding.example is not a public address; PEERPATH_WEBHOOK_PRIVATE=1 allows such."
    assert found["said"] == [204, refused, refused]
    assert (found["public"], found["inside"]) == (["/hook"], [])
    assert found["asked"] == 3  # once for each
