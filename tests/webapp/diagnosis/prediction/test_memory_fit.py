"""Whether the weights fit so many GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.gpu import GPUS, Gpu
from agents.facts.workload import MODEL, Model
from tests.webapp.diagnosis.building import facts_of
from webapp.diagnosis.prediction.memory_fit import RESERVE_SHARE, fit, gpu_bytes, too_large

PRO = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
GIB_90 = Gpu(0, vram_mib=90 * 1024)
ROOM = 8 * 90 * 2**30 * (1 - RESERVE_SHARE)


def known(*gpus: Gpu, **model: Any) -> tuple[Reading[Any], ...]:
    return GPUS.known(gpus, lines=(1,)), MODEL.known(Model(**model), lines=(1,))


@pytest.mark.parametrize(
    ("weights", "fits"), [((ROOM, ROOM), True), ((ROOM * 0.9, ROOM * 1.01), None), ((ROOM * 1.01, ROOM * 1.2), False)]
)
def test_a_range_of_weights_fits_where_its_high_end_does(weights: tuple[float, float], fits: bool | None) -> None:
    room = fit(facts_of(*known(GIB_90, weight_bytes=weights)), 8)
    assert room.fits is fits
    assert (too_large(facts_of(*known(GIB_90, weight_bytes=weights)), 8) is not None) is (fits is False)


@pytest.mark.parametrize(
    ("gpus", "mib"),
    [
        ((GIB_90, replace(GIB_90, vram_mib=40 * 1024)), 40 * 1024),
        ((Gpu(0, name=PRO, vram_mib=1000), Gpu(1, name=PRO)), 1000),
    ],
)
def test_the_smallest_gpu_that_the_driver_lists_decides(gpus: tuple[Gpu, ...], mib: int) -> None:
    assert gpu_bytes(facts_of(GPUS.known(gpus))) == mib * 2**20


def test_a_models_datasheet_serves_where_the_driver_gave_no_size() -> None:
    assert gpu_bytes(facts_of(GPUS.known((Gpu(0, name=PRO),)))) == 96e9
    assert gpu_bytes(facts_of(GPUS.known((Gpu(0, name="Some card"),)))) is None


@pytest.mark.parametrize(
    ("gpu", "label"), [(Gpu(0, name=PRO, vram_mib=97887), "× 96 GB"), (Gpu(0, vram_mib=97887), "× 103 GB")]
)
def test_a_size_is_named_as_it_is_sold(gpu: Gpu, label: str) -> None:
    assert label in fit(facts_of(*known(gpu, weight_bytes=(1e9, 1e9))), 8).why


@pytest.mark.parametrize(
    ("each", "says"), [((1e6, 1e6), "about 79,000 tokens"), ((0.0, 0.0), "not known"), (None, "not known")]
)
def test_what_is_left_for_the_cache(each: tuple[float, float] | None, says: str) -> None:
    gpu = Gpu(0, vram_mib=100_000_000_000 // 2**20)
    left = 79e9
    weights = 100_000_000_000 // 2**20 * 2**20 * (1 - RESERVE_SHARE) - left
    room = fit(facts_of(*known(gpu, weight_bytes=(weights, weights), kv_bytes_per_token=each)), 1)
    assert says in room.why


@pytest.mark.parametrize(
    ("readings", "says"),
    [
        ((), "the size of the checkpoint is not known, nor is the GPUs’ memory"),
        ((GPUS.known((GIB_90,)),), "the size of the checkpoint is not known"),
        ((MODEL.known(Model(weight_bytes=(1e9, 1e9))),), "the GPUs’ memory is not known"),
    ],
)
def test_without_a_size_nothing_is_said_of_the_fit(readings: tuple[Reading[Any], ...], says: str) -> None:
    room = fit(facts_of(*readings), 8)
    assert (room.fits, room.why) == (None, says)
