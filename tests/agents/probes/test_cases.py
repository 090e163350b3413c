"""Every case folder: what a tool printed, and what its probe must read from it.

A case is tests/agents/probes/<role>/<probe>/<case>/ with stdout.txt, optional stderr.txt, case.toml
(source, exit_code, alternative, truncated) and expected.json ({fact id: {kind, value, missing}}).
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import ReadingKind
from agents.framing import clean
from agents.probe import Output, Probe
from agents.probes import all_probes

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/*/*/case.toml"))
PROBES = list(all_probes().values())


def _output(case: Path) -> Output:
    meta = tomllib.loads((case / "case.toml").read_text())
    stderr = case / "stderr.txt"
    return Output(
        clean((case / "stdout.txt").read_bytes()),
        clean(stderr.read_bytes()) if stderr.exists() else "",
        meta.get("exit_code", 0),
        meta.get("alternative", 0),
        meta.get("truncated", False),
    )


def _probe(case: Path) -> Probe:
    return all_probes()[f"{case.parent.parent.name}.{case.parent.name}"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: "/".join(c.parts[-3:]))
def test_a_case_reads_as_expected(case: Path) -> None:
    expected: dict[str, dict[str, Any]] = json.loads((case / "expected.json").read_text())
    got = {r.fact_id: r for r in _probe(case).parse(_output(case))}
    assert set(got) == set(expected)
    for fact_id, want in expected.items():
        assert got[fact_id].kind == want["kind"], got[fact_id].detail
        if "value" in want:
            assert json.loads(msgspec.json.encode(got[fact_id].value)) == want["value"]
        assert list(got[fact_id].missing) == want.get("missing", [])


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: p.id)
def test_every_probe_has_its_cases(probe: Probe) -> None:
    role, name = probe.id.split(".")
    cases = [c for c in CASES if c.parts[-3:-1] == (role, name)]
    kinds = {_probe(c).parse(_output(c))[0].kind for c in cases}
    assert len(cases) >= 3, "a good, a faulty and a tool-missing or cut case at least"
    assert ReadingKind.KNOWN in kinds
    assert kinds - {ReadingKind.KNOWN}


@settings(max_examples=50)
@given(text=st.text(max_size=400), exit_code=st.sampled_from([0, 1, 127, None]))
def test_no_text_makes_a_probe_raise_or_forget_a_fact(text: str, exit_code: int | None) -> None:
    for probe in PROBES:
        readings = probe.parse(Output(text, "", exit_code))
        assert {r.fact_id for r in readings} == {f.id for f in probe.supplies}, probe.id


@pytest.mark.thorough
@pytest.mark.parametrize("probe", PROBES, ids=lambda p: p.id)
@pytest.mark.parametrize("how", ["half", "crlf", "junk"])
def test_a_damaged_case_still_reads_to_something(probe: Probe, how: str) -> None:
    role, name = probe.id.split(".")
    for case in (c for c in CASES if c.parts[-3:-1] == (role, name)):
        raw = (case / "stdout.txt").read_bytes()
        damaged = {
            "half": raw[: len(raw) // 2],
            "crlf": raw.replace(b"\n", b"\r\n"),
            "junk": raw + bytes(range(256)) * 4,
        }[how]
        readings = probe.parse(Output(clean(damaged)))
        assert {r.fact_id for r in readings} == {f.id for f in probe.supplies}
        if how == "crlf":
            assert readings == probe.parse(Output(clean(raw)))
