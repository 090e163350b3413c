"""The contention payload: run for real on memory of the CPU, and what is read of its lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.benchmark import all_benchmarks
from agents.facts import Reading, ReadingKind
from agents.facts.bench import CONTENTION, ContentionResult, Pattern
from agents.probe import Output
from tests.agents.payloads.running import finish, start

BENCHMARK = all_benchmarks()["bench.contention"]
HEADER = {"schema": "peerpath.contention/1", "environment": {"device": "cuda"}}
MIB = 2**20


@pytest.mark.service
@pytest.mark.thorough
def test_on_a_cpu_every_pattern_runs_and_says_nothing_of_gpus(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "program"
    program.write_bytes(BENCHMARK.payload_source())
    lines, out, err = finish(start(program, "--device", "cpu", "--sizes", "64K"))
    assert (err, lines[-1]) == ("", {"end": True})
    rows = {line["pattern"]: line for line in lines if "pattern" in line}
    flows = {name: row["flows"] for name, row in rows.items()}
    assert flows == {"alone": 1, "all_to_all": 6, "many_to_one": 2, "one_to_many": 2}
    for row in rows.values():
        moved = row["flows"] * 65536 / row["time_us"] / 1e3
        assert row["gb_per_s"] == pytest.approx(moved, abs=1e-3)
    found, _ = BENCHMARK.parse(Output(out))
    assert found.kind is ReadingKind.NOT_RUN


def _row(pattern: str, flows: int, time_us: float, **more: Any) -> dict[str, Any]:
    return {"pattern": pattern, "flows": flows, "size_bytes": MIB, "time_us": time_us, **more}


def _read(*lines: object) -> Reading[ContentionResult]:
    readings = BENCHMARK.parse(Output("\n".join(json.dumps(line) for line in (HEADER, *lines))))
    return next(r for r in readings if r.fact_id == CONTENTION.id)


def test_a_slowdown_is_against_one_copy_of_the_same_size_and_access() -> None:
    off, on = {"peer_access": False}, {"peer_access": True}
    found = _read(
        _row("from_host", 1, 20.0),
        _row("all_from_host", 2, 30.0),
        _row("alone", 1, 40.0, **off),
        _row("all_to_all", 2, 100.0, **off),
        _row("alone", 1, 60.0, **off),
        _row("alone", 1, 5.0, **on),
        _row("all_to_all", 2, 6.0, **on),
        {"end": True},
    )
    assert found.complete
    assert found.value
    slowdowns = [row.slowdown for row in found.value.rows if row.flows > 1]
    assert slowdowns == [1.5, 2.0, 1.2]
    assert found.value.rows[3].gb_per_s == pytest.approx(2 * MIB / 100 / 1e3)


def test_a_cut_run_keeps_its_rows_without_the_slowdowns_it_cannot_tell() -> None:
    found = _read(_row("to_host", 1, 20.0), _row("all_to_all", 2, 30.0), {"stopped": "no time"})
    assert found.missing == ("the end: no time",)
    assert found.value
    assert found.value.rows[1].pattern is Pattern.ALL_TO_ALL
    assert found.value.rows[1].slowdown is None


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
NAMES = st.sampled_from([*_row("alone", 1, 1.0), "gb_per_s", "peer_access", "samples", "error"])


@settings(max_examples=50)
@given(st.lists(st.dictionaries(NAMES, ANY | st.sampled_from(list(Pattern))), max_size=8))
def test_no_line_makes_the_reader_raise_or_give_an_odd_row(lines: list[dict[str, Any]]) -> None:
    found = _read(*lines)
    for row in found.value.rows if found.value else ():
        assert min(row.flows, row.size_bytes, row.time_us) > 0
        assert row.slowdown is None or row.slowdown > 0
