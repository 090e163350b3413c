"""Measured figures beside what a healthy machine reaches."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import Reading
from agents.facts.bench import ALLREDUCE, COPY, AllReduceResult, AllReduceRow, CopyPath, CopyResult, CopyRow, Timing
from agents.facts.gpu import GPUS, Gpu
from agents.facts.kernels import MEMORY, Figures, MemoryResult, MemoryRow
from agents.facts.p2p import TOPOLOGY
from agents.probe import Output
from tests.webapp.diagnosis.building import facts_of, topology
from webapp.diagnosis.prediction.baselines import Figure, Standing, figures
from webapp.diagnosis.reference import expectations as reference
from webapp.diagnosis.reference.expectations import Expectation, host_rate
from webapp.diagnosis.reference.gpus import GPUS as GPUS_LISTED

PAYLOADS = Path(__file__).resolve().parents[3] / "agents" / "payloads"
H200, PRO = "NVIDIA H200", "NVIDIA RTX PRO 6000 Blackwell Server Edition"


def gpus(name: str, count: int = 2, gen: int | None = 5, width: int | None = 16) -> Reading[Any]:
    return GPUS.known(tuple(Gpu(i, name, pcie_gen_max=gen, pcie_width_max=width) for i in range(count)), lines=(1,))


def links(link: str, count: int = 2) -> Reading[Any]:
    return TOPOLOGY.known(topology(count, link), lines=(1,))


def copy(path: CopyPath, rate: float, access: bool | None = None, *, unstable: bool = False) -> Reading[Any]:
    size = 64 * 2**20
    row = CopyRow(path, "0", "1", size, size / rate / 1e3, Timing.DEVICE, peer_access=access, unstable=unstable)
    return COPY.known(CopyResult((row,)), lines=(3,))


def memory(rate: float) -> Reading[Any]:
    size = 512 * 2**20
    row = MemoryRow("0", "triad", size, 3 * size, 2**25, rate, Figures(3 * size / rate / 1e3, Timing.DEVICE), 4)
    return MEMORY.known(MemoryResult((row,)), lines=(4,))


def reduced(time_us: float, ranks: int, *, p2p: bool, graph: bool = True) -> Reading[Any]:
    row = AllReduceRow(12288, time_us, ranks, graph=graph, line=2)
    return ALLREDUCE.known(AllReduceResult((row,), p2p), lines=(2,))


def only(*readings: Reading[Any]) -> Figure:
    (figure,) = figures(facts_of(*readings))
    return figure


def test_what_two_h200_gave_is_what_h200_give() -> None:
    copies = all_benchmarks()["bench.copy"].parse(Output((PAYLOADS / "two_h200.jsonl").read_text()))
    sums = all_benchmarks()["bench.allreduce"].parse(Output((PAYLOADS / "two_h200_allreduce.jsonl").read_text()))
    found = figures(facts_of(gpus(H200), links("NV18"), *copies, *sums))
    standing = {figure.title: figure.standing for figure in found}
    assert standing["Host to GPU 0"] is Standing.WITHIN
    assert standing["Large copy, GPU 0 to 1, peer access on"] is Standing.WITHIN
    assert standing["Small copy, GPU 0 to 1, peer access on"] is Standing.WITHIN
    assert standing["Small copy, GPU 0 to 1, peer access off"] is Standing.UNSTABLE
    assert standing["Small all-reduce over 2, with P2P"] is Standing.WITHIN
    assert standing["Small all-reduce over 2, without P2P"] is Standing.WITHIN
    assert all(figure.evidence for figure in found)


def every_expectation() -> list[Expectation]:
    cards = [spec.name for spec in GPUS_LISTED] + [H200, PRO]
    sums = [
        reference.small_all_reduce(card, ranks, p2p=p2p, nvlink=nvlink)
        for card in cards
        for ranks in (2, 4, 8)
        for p2p in (True, False)
        for nvlink in (True, False)
    ]
    rates = (reference.host_rate, reference.staged_rate, reference.peer_rate_pcie)
    found = [rate(gen, 16) for rate in rates for gen in (3, 4, 5)]
    found += [reference.memory_rate(card) for card in cards]
    found += [reference.peer_rate_nvlink(card, 18) for card in cards]
    found += [reference.small_copy(H200, access=on, nvlink=True) for on in (True, False)]
    return [one for one in (*found, *sums) if one]


def test_every_expected_value_says_whose_it_is_and_of_when() -> None:
    found = every_expectation()
    assert len(found) > 50
    for source in {part for one in found for part in one.source.split("; ")}:
        assert re.search(r"\b20\d\d\b", source), source


@pytest.mark.parametrize(
    ("name", "rate", "standing", "worse"),
    [
        (H200, 4300, Standing.WITHIN, False),
        (H200, 3700, Standing.BELOW, True),  # two healthy ones gave 4167 and more
        (H200, 9000, Standing.ABOVE, False),  # more than the memory can give: not memory
        ("A card nobody lists", 4300, Standing.NO_BASELINE, False),
    ],
)
def test_memory(name: str, rate: float, standing: Standing, worse: bool) -> None:
    figure = only(gpus(name), memory(rate))
    assert (figure.standing, figure.worse) == (standing, worse)
    assert figure.value == pytest.approx(rate)


@pytest.mark.parametrize(
    ("gen", "width", "rate", "standing"),
    [
        (5, 16, 55.0, Standing.WITHIN),
        (5, 16, 27.0, Standing.BELOW),
        (4, 16, 27.0, Standing.WITHIN),
        (5, 8, 27.0, Standing.WITHIN),
        (None, 16, 27.0, Standing.NO_BASELINE),
        (5, None, 27.0, Standing.NO_BASELINE),
    ],
)
def test_the_host_link_is_judged_by_its_generation_and_width(
    gen: int | None, width: int | None, rate: float, standing: Standing
) -> None:
    row = copy(CopyPath.HOST_TO_DEVICE, rate)
    assert only(gpus(PRO, gen=gen, width=width), row).standing is standing


@pytest.mark.parametrize(
    ("link", "access", "rate", "standing"),
    [
        ("PHB", True, 53.0, Standing.WITHIN),
        ("PHB", True, 40.0, Standing.BELOW),
        ("PHB", False, 40.0, Standing.WITHIN),
        ("NV18", True, 53.0, Standing.NO_BASELINE),  # this card has no NVLink
        (None, True, 53.0, Standing.NO_BASELINE),  # which way it went was not read
    ],
)
def test_copies_between_gpus_are_judged_by_their_path(
    link: str | None, access: bool, rate: float, standing: Standing
) -> None:
    known = [links(link)] if link else []
    figure = only(gpus(PRO), *known, copy(CopyPath.PEER, rate, access))
    assert figure.standing is standing


@pytest.mark.parametrize(
    ("name", "ranks", "link", "p2p", "standing"),
    [
        (PRO, 8, "PHB", True, Standing.WITHIN),
        (PRO, 8, "PHB", False, Standing.NO_BASELINE),  # no public figure was found
        (PRO, 3, "PHB", True, Standing.NO_BASELINE),
        (H200, 2, "NV18", True, Standing.ABOVE),
        ("NVIDIA L40S", 8, "PHB", True, Standing.NO_BASELINE),
    ],
)
def test_small_all_reduces(name: str, ranks: int, link: str, p2p: bool, standing: Standing) -> None:
    figure = only(gpus(name, ranks), links(link, ranks), reduced(30.0, ranks, p2p=p2p))
    assert figure.standing is standing
    assert figure.worse is (standing is Standing.ABOVE)


def test_an_eager_all_reduce_and_a_spread_copy_are_not_judged() -> None:
    assert figures(facts_of(gpus(PRO, 8), links("PHB", 8), reduced(30.0, 8, p2p=True, graph=False))) == ()
    spread = copy(CopyPath.HOST_TO_DEVICE, 20.0, unstable=True)
    assert only(gpus(PRO), spread).standing is Standing.UNSTABLE


def test_an_interval_that_reaches_into_the_range_is_within() -> None:
    size = 64 * 2**20
    row = CopyRow(
        CopyPath.HOST_TO_DEVICE,
        "cpu",
        "0",
        size,
        size / 49 / 1e3,
        Timing.DEVICE,
        ci_low_us=size / 51 / 1e3,
        ci_high_us=size / 48 / 1e3,
    )
    assert only(gpus(PRO), COPY.known(CopyResult((row,)))).standing is Standing.WITHIN


def test_a_scaled_range_says_so_and_every_range_has_a_source() -> None:
    scaled, whole = host_rate(4, 16), host_rate(5, 16)
    assert scaled
    assert whole
    assert "scaled from Gen5 x16 to Gen4 x16" in scaled.source
    assert "scaled" not in whole.source
    assert (scaled.low, scaled.high) == (whole.low / 2, whole.high / 2)


def test_figures_of_another_machine_are_judged_by_its_card() -> None:
    result = memory(4300).value
    assert result
    pasted = MEMORY.known(replace(result, environment={"gpus": f"{H200}, {H200}"}))
    figure = only(gpus("NVIDIA RTX PRO 6000 Blackwell Server Edition"), pasted)
    assert figure.standing is Standing.WITHIN, "4300 GB/s is no card's but the one that was measured"


def test_a_card_that_only_the_measurement_names_is_known() -> None:
    result = memory(4300).value
    assert result
    named = MEMORY.known(replace(result, environment={"gpus": f"{H200}, {H200}"}))
    mixed = MEMORY.known(replace(result, environment={"gpus": f"{H200}, NVIDIA L4"}))
    assert only(named).standing is Standing.WITHIN
    assert only(mixed).standing is Standing.NO_BASELINE
