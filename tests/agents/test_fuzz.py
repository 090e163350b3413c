"""No damaged output makes a parser, the recogniser or the reader raise."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

import pytest

from agents.benchmark import Benchmark, all_benchmarks
from agents.framing import clean
from agents.probe import Output, Probe
from agents.probes import all_probes
from agents.raw_reading import read_raw
from tests.agents.mutating import mutants, seeds

pytestmark = pytest.mark.thorough

MOST_LOOKS = 130
READERS: dict[str, Probe | Benchmark] = {**all_probes(), **all_benchmarks()}


def _parse(reader_id: str, raw: bytes) -> None:
    """The parser itself, not behind the boundary that would catch what it raises."""
    reader = READERS[reader_id]
    readings = reader.parse(Output(clean(raw), "", random.Random(len(raw)).choice((0, 1, 127, None))))
    assert {reading.fact_id for reading in readings} >= {fact.id for fact in reader.supplies}
    assert all(line > 0 for reading in readings for line in reading.lines), reader_id


@pytest.mark.parametrize("seed", range(4))
def test_no_damaged_output_makes_its_parser_raise(seed: int) -> None:
    rng = random.Random(seed)
    for reader_id, raw in mutants(1000, seed):
        _parse(reader_id or rng.choice(list(READERS)), raw)


@pytest.mark.parametrize("seed", range(4))
def test_no_damaged_output_makes_another_parser_raise(seed: int) -> None:
    rng = random.Random(seed)
    for _, raw in mutants(600, 100 + seed):
        _parse(rng.choice(list(READERS)), raw)


@pytest.mark.parametrize("seed", range(2))
def test_no_damaged_output_makes_the_recogniser_raise_or_lose_its_place(seed: int) -> None:
    for reader_id, raw in mutants(200, 200 + seed):
        found = read_raw(raw, role=None, hint=reader_id)
        last = raw.count(b"\n") + 1
        for item in found.items:
            assert not any(r.detail.startswith("its parser failed") for r in item.readings)
            if item.lines:
                assert 1 <= item.lines[0] <= item.lines[1] <= last
        assert all(1 <= first <= end <= last for first, end in found.unrecognised)


def test_a_blank_line_costs_no_reader_more_than_a_few_looks() -> None:
    """Half a megabyte of them took two parsers 5 s. Counted in what finding the lines costs by itself, so
    that a busy machine changes nothing."""
    text = "\n" * 100_000
    usual = min(_cpu_s(lambda: sum(1 for line in text.splitlines() if line)) for _ in range(3))
    cost = {name: _cpu_s(partial(reader.parse, Output(text))) for name, reader in READERS.items()}
    found = {name: round(took / usual) for name, took in cost.items()}
    assert {name: looks for name, looks in found.items() if looks > MOST_LOOKS} == {}


def _cpu_s(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def test_every_seed_has_its_reader() -> None:
    assert {reader for reader, _ in seeds()} - {""} <= READERS.keys()
    assert len(seeds()) > 100
