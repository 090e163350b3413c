"""Hypotheses about the machine below, and what holds for all hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import TELEMETRY, GpuTelemetry
from agents.facts.gpu import (
    BAR_FAILURES,
    GPU_COUNT_PCI,
    GPU_COUNT_SMI,
    GPU_NUMA,
    GPUS,
    PCI_GPUS,
    XID_EVENTS,
    BarFailure,
    GpuNuma,
    PciGpu,
    XidEvent,
)
from agents.facts.host import PLATFORM, Platform
from agents.facts.platform import MEMORY_MIB, NUMA_NODES, PHYS_BITS, NumaNode
from agents.facts.vm import VM_NUMA
from tests.webapp.diagnosis import test_hypotheses_p2p, test_hypotheses_time
from tests.webapp.diagnosis.building import EIGHT, kvm_guest
from tests.webapp.diagnosis.hypothesis_cases import verdict
from webapp.diagnosis.case import Bound
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.claim import Basis

Given = Sequence[Reading[Any] | Bound]


def _counts(listed: int, on_bus: int) -> list[Reading[Any]]:
    return [GPU_COUNT_SMI.known(listed, lines=(1,)), GPU_COUNT_PCI.known(on_bus, lines=(1,))]


def _links(gen: int, width: int, utilisation: int) -> Reading[Any]:
    gpu = replace(EIGHT[0], utilisation_percent=utilisation, pcie_gen_max=5, pcie_width_max=16)
    gpus = tuple(replace(gpu, index=i, pcie_gen=gen, pcie_width=width) for i in range(8))
    return GPUS.known(gpus, lines=(1,))


def _nodes(count: int) -> Reading[Any]:
    return NUMA_NODES.known(tuple(NumaNode(i, "0-7") for i in range(count)), lines=(1,))


def _placed(node: int | None) -> Reading[Any]:
    return GPU_NUMA.known(tuple(GpuNuma(f"GPU{i}", node) for i in range(8)), lines=(1,))


NO_SPACE = BAR_FAILURES.known((BarFailure("0000:01:00.0", 1, "can't assign; no space"),), lines=(7,))

CASES: dict[str, dict[str, Given]] = {
    "bar_space_shortage": {
        "supported": [NO_SPACE, *_counts(2, 8)],
        "refuted": [BAR_FAILURES.absent("none since the boot"), *_counts(8, 8)],
        "open": [*_counts(2, 8)],
    },
    "gpu_lost": {
        "supported": [*_counts(2, 8)],
        "refuted": [*_counts(8, 8)],
        "open": [GPU_COUNT_SMI.known(8, lines=(1,))],
    },
    "pcie_link_degraded": {"supported": [_links(5, 8, 0)], "refuted": [_links(5, 16, 0)], "open": [_links(1, 16, 0)]},
    "numa_misplacement": {
        "supported": [_nodes(2), _placed(None)],
        "refuted": [_nodes(2), _placed(1)],
        "open": [*kvm_guest(), _nodes(1)],
    },
}

ALL = {**CASES, **test_hypotheses_time.CASES, **test_hypotheses_p2p.CASES}


@pytest.mark.parametrize("kind", ["supported", "refuted", "open"])
@pytest.mark.parametrize("hypothesis_id", CASES)
def test_a_case_decides(hypothesis_id: str, kind: str) -> None:
    assert verdict(hypothesis_id, *CASES[hypothesis_id][kind]).kind == kind


def test_forty_bits_are_too_few_for_eight_large_cards() -> None:
    gpus = GPUS.known(tuple(replace(gpu, vram_mib=97887) for gpu in EIGHT[:2]), lines=(1,))
    given = [gpus, *_counts(2, 8), MEMORY_MIB.known(442368, lines=(1,))]
    assert verdict("bar_space_shortage", *given, PHYS_BITS.known(40, lines=(1,))).kind == "supported"
    assert verdict("bar_space_shortage", *given, PHYS_BITS.known(46, lines=(1,))).kind == "open"


def test_slow_links_count_only_under_load() -> None:
    assert verdict("pcie_link_degraded", _links(4, 16, 100)).kind == "supported"


@pytest.mark.parametrize(
    ("gen", "looks", "kind"),
    [(5, 20, "refuted"), (3, 20, "supported"), (5, 5, "refuted"), (3, 5, "supported"), (3, 4, "open"), (3, 1, "open")],
)
def test_the_best_that_a_measurement_saw_decides_over_an_idle_link(gen: int, looks: int, kind: str) -> None:
    seen = tuple(GpuTelemetry(str(i), looks, pcie_gen=gen, pcie_width=16) for i in range(8))
    got = verdict("pcie_link_degraded", _links(1, 16, 0), TELEMETRY.known(seen, lines=(2,)))
    assert got.kind == kind


@pytest.mark.parametrize(
    ("reason", "share", "kind"),
    [
        ("hardware thermal slowdown", 40.0, "supported"),
        ("hardware thermal slowdown", 4.0, "open"),
        ("software power cap", 90.0, "open"),
    ],
)
def test_what_held_the_clocks_back_while_it_was_measured(reason: str, share: float, kind: str) -> None:
    seen = GpuTelemetry("0", 20, throttle_reasons=(reason,), throttled_percent=share)
    got = verdict("power_or_thermal_limit", TELEMETRY.known((seen,), lines=(2,)))
    assert got.kind == kind
    assert all(claim.evidence and reason in claim.text for claim in got.for_)


@pytest.mark.parametrize(
    "reading",
    [
        GPUS.known((replace(EIGHT[0], lost=True), *EIGHT[1:]), lines=(1,)),
        PCI_GPUS.known((PciGpu("0000:01:00.0", revision="ff"),), lines=(1,)),
        XID_EVENTS.known((XidEvent("0000:01:00.0", 79, "GPU has fallen off the bus"),), lines=(1,)),
    ],
)
def test_signs_of_a_lost_gpu(reading: Reading[Any]) -> None:
    assert verdict("gpu_lost", reading).kind == "supported"


def test_one_node_in_the_guest_over_two_sockets_stays_open() -> None:
    platform = PLATFORM.known(Platform(sockets=2), lines=(1,))
    numa = VM_NUMA.known(False, lines=(1,))
    got = verdict("numa_misplacement", *kvm_guest(), _nodes(1), platform, numa)
    assert got.kind == "open"
    assert "2 sockets" in got.for_[0].text
    one = PLATFORM.known(Platform(sockets=1), lines=(1,))
    assert verdict("numa_misplacement", *kvm_guest(), _nodes(1), one).kind == "refuted"


def test_every_hypothesis_has_its_three_cases() -> None:
    assert set(ALL) == {hypothesis.id for hypothesis in all_hypotheses()}
    assert all(set(cases) == {"supported", "refuted", "open"} for cases in ALL.values())


@pytest.mark.parametrize("hypothesis", all_hypotheses(), ids=lambda h: h.id)
def test_nothing_read_is_open_and_says_what_is_missing(hypothesis: Any) -> None:
    got = verdict(hypothesis.id)
    assert got.kind == "open"
    assert got.missing
    assert not got.for_
    assert not got.against


@pytest.mark.parametrize("hypothesis_id", ALL)
def test_every_claim_names_its_evidence(hypothesis_id: str) -> None:
    for cases in ALL.values():
        for given in cases.values():
            got = verdict(hypothesis_id, *given)
            for claim in (*got.for_, *got.against):
                assert claim.evidence or claim.basis is Basis.LITERATURE, claim.text


def test_what_would_tell_of_an_idle_link_is_a_measurement_and_of_none_the_list() -> None:
    assert verdict("pcie_link_degraded", _links(1, 16, 0)).missing == ("bench.telemetry",)
    assert verdict("pcie_link_degraded").missing == ("guest.driver_version",)
