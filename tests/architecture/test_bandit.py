"""bandit, beside ruff's version of it: it follows some calls that ruff does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Asserts that narrow a type, subprocesses without a shell, and "pass", which is a gate's state: the same
# that pyproject.toml leaves out for ruff, with the same reasons.
LEFT_OUT = "B101,B105,B404,B603,B607"


@pytest.mark.thorough
def test_what_bandit_finds_was_looked_at(tmp_path: Path) -> None:
    """A line that it names carries ruff's `noqa: S…`, which stands there because somebody looked."""
    found = tmp_path / "found.json"
    options = ["-q", "-s", LEFT_OUT, "-x", "agents/payloads", "-f", "json", "-o", str(found)]
    subprocess.run(
        [sys.executable, "-m", "bandit", *options, "-r", "agents", "webapp", "worker", "manage.py"],
        cwd=ROOT,
        check=False,
        capture_output=True,
    )
    report = json.loads(found.read_text())
    assert not report["errors"]
    assert report["metrics"]["_totals"]["loc"] > 20_000
    assert [said for issue in report["results"] if (said := _not_looked_at(issue))] == []


def _not_looked_at(issue: dict[str, object]) -> str:
    name, number = str(issue["filename"]), int(str(issue["line_number"]))
    line = (ROOT / name).read_text().splitlines()[number - 1]
    return "" if "noqa: S" in line else f"{name}:{number} {issue['issue_text']}"
