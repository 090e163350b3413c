"""Layouts: communication from the measured copies, and whether the weights fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import Reading
from agents.facts.bench import COPY, CopyPath, CopyResult, CopyRow
from agents.facts.gpu import GPUS, Gpu
from agents.facts.workload import MODEL, PARALLELISM, Model, Parallelism
from webapp.diagnosis.case import Case, Layout
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.prediction.layouts import comm_per_token_ms, layouts
from webapp.diagnosis.prediction.memory_fit import fit
from webapp.diagnosis.situation import Situation

COPIES = COPY.known(CopyResult((CopyRow(CopyPath.PEER, "0", "1", 12288, 13.7),)))


def facts(*readings: Reading[Any]) -> Facts:
    return Facts.of(Sourced(reading, "test") for reading in readings)


def found(parallel: Parallelism, *more: Reading[Any]) -> dict[str, Layout]:
    model = Model(layers=78, hidden_size=6144, activation_bytes=2, experts=256)
    readings: tuple[Reading[Any], ...] = (MODEL.known(model), PARALLELISM.known(parallel), *more)
    return {layout.id: layout for layout in layouts(Case(Situation(facts(*readings))))}


def test_the_served_layout_comes_first() -> None:
    assert next(iter(found(Parallelism(tp=8)))) == "tp8"
    assert list(found(Parallelism(tp=4, pp=2)))[:3] == ["tp4+pp2", "tp2+pp4", "tp2+pp2"]
    assert layouts(Case(Situation(facts()))) == ()


def test_fewer_ranks_take_fewer_steps() -> None:
    by_id = found(Parallelism(tp=8), COPIES)
    eight, four = by_id["tp8"].comm_ms, by_id["tp4+pp2"].comm_ms
    assert eight
    assert four
    assert four[1] / eight[1] == pytest.approx(6 / 14, rel=0.01)
    assert by_id["tp8+ep8"].comm_ms is None
    assert by_id["tp8+dp_attention"].comm_ms is None


def test_without_a_copy_no_figure_is_made_up() -> None:
    assert {layout.comm_ms for layout in found(Parallelism(tp=8)).values()} == {None}
    assert {layout.fits for layout in found(Parallelism(tp=8)).values()} == {None}


def test_what_helps_many_requests_is_not_sold_to_one() -> None:
    by_id = found(Parallelism(tp=8), COPIES)
    experts, attention = by_id["tp8+ep8"].why, by_id["tp8+dp_attention"].why
    assert "at concurrency 1 a token wakes" in experts
    assert "measure them" in experts
    assert "all attention weights" in attention
    assert "a single stream gets no faster" in attention


def test_what_is_left_holds_so_much_context() -> None:
    cards = GPUS.known(tuple(Gpu(i, vram_mib=97887) for i in range(8)))
    weights = Model(weight_bytes=(410e9, 440e9))
    assert "size for a token is not known" in fit(facts(cards, MODEL.known(weights)), 8).why
    small = MODEL.known(replace(weights, kv_bytes_per_token=(5e5, 7.2e5)))
    assert "about 415,000 tokens of context" in fit(facts(cards, small), 8).why


@settings(max_examples=50)
@given(low=st.floats(1, 2000), more=st.floats(1, 2), gpus=st.integers(1, 16), gb=st.integers(10, 300))
def test_what_fits_one_fits_more_and_never_without_a_reserve(low: float, more: float, gpus: int, gb: int) -> None:
    cards = GPUS.known(tuple(Gpu(i, vram_mib=int(gb * 1e9 / 2**20)) for i in range(gpus)))
    model = MODEL.known(Model(weight_bytes=(low * 1e9, low * more * 1e9)))
    one, two = fit(facts(cards, model), gpus), fit(facts(cards, model), gpus + 1)
    if one.fits:
        assert two.fits
        assert low * more < gpus * gb
    if one.fits is False:
        assert low > gpus * gb * 0.89


def test_an_unknown_size_is_not_a_verdict() -> None:
    assert fit(facts(), 8).fits is None
    assert fit(facts(GPUS.known((Gpu(0, "Unheard of"),)), MODEL.known(Model())), 1).fits is None


def test_moving_to_another_layout_restarts_the_engine() -> None:
    costs = {name: layout.restart for name, layout in found(Parallelism(tp=8)).items()}
    assert costs.pop("tp8") == "none"
    assert set(costs.values()) == {"engine"}


def test_one_gpu_reduces_nothing_and_two_do() -> None:
    known = facts(COPIES, MODEL.known(Model(layers=78, hidden_size=6144, activation_bytes=2)))
    assert comm_per_token_ms(Situation(known), 1) == (0.0, 0.0)
    two, four = comm_per_token_ms(Situation(known), 2), comm_per_token_ms(Situation(known), 4)
    assert two
    assert four
    assert 0 < two[0] <= two[1] < four[1]
    assert four[1] / two[1] == pytest.approx(6 / 2, rel=0.01)
