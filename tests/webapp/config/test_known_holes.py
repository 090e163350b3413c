"""`./test audit`: what pip-audit printed is read for what it says, and for what it could not say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from webapp.config import known_holes

# As pip-audit 2.10.1 prints it (its _format/json.py).
CLEAN: dict[str, Any] = {"name": "click", "version": "8.5.1", "vulns": []}
UNASKED = {"name": "vine", "skip_reason": "Dependency not found on PyPI and could not be audited"}
BAD = {
    "name": "jinja2",
    "version": "2.4.1",
    "vulns": [{"id": "PYSEC-2014-8", "fix_versions": ["2.7.3"], "aliases": ["CVE-2014-1402"]}],
}


def answer(*packages: Any) -> known_holes.Answer:
    return known_holes.answer_of(json.dumps({"dependencies": packages, "fixes": []}), "")


def test_a_known_hole_is_named_with_what_mends_it() -> None:
    assert answer(CLEAN, BAD).holes == ("jinja2 2.4.1: PYSEC-2014-8, mended in 2.7.3",)


def test_what_nobody_was_asked_about_is_not_called_clean() -> None:
    assert answer(CLEAN).said() == "1 packages looked up, no known holes."
    said = answer(CLEAN, UNASKED).said()
    assert said.startswith("1 packages looked up; 1 could not be asked about, and nothing is known")
    assert "no known holes" not in said


def test_a_service_out_of_reach_is_said_with_its_reason() -> None:
    said = known_holes.answer_of("", "Traceback\nConnectionError: pypi.org: no such name\n").said()
    assert said.startswith("0 packages looked up; 1 could not be asked")
    assert "ConnectionError: pypi.org: no such name" in said


def test_only_a_hole_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """With a stand-in for pip-audit, which prints what it would print."""
    program = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(program))
    for package, code in ((BAD, 1), (UNASKED, 0), (CLEAN, 0)):
        printed = json.dumps({"dependencies": [package]})
        program.write_text(f"#!/bin/sh\necho '{printed}'\nexit {code}\n")
        program.chmod(0o700)
        assert known_holes.main(["requirements.txt"]) == code
        assert "looked up" in capfd.readouterr().err
