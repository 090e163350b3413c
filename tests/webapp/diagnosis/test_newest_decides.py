"""After a change the newest readings decide; what was read before it is history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import (
    ALLREDUCE,
    COPY,
    TELEMETRY,
    AllReduceResult,
    AllReduceRow,
    CopyPath,
    CopyResult,
    CopyRow,
    GpuTelemetry,
)
from agents.facts.gpu import (
    BAR_FAILURES,
    BARS,
    CLIQUE_CAPABILITY,
    FABRIC,
    GPU_COUNT_PCI,
    GPU_COUNT_SMI,
    GPUS,
    PCI_GPUS,
    XID_EVENTS,
    Bar,
    BarFailure,
    Clique,
    Fabric,
    PciGpu,
    XidEvent,
)
from agents.facts.p2p import P2P_NVLINK, P2P_READ, P2P_WRITE, P2pCode
from agents.facts.platform import KVM_VISIBLE, VIRT_KIND
from agents.facts.vm import VM_CPU_HIDDEN, VMS, HostPci, Vm
from agents.facts.workload import MODEL, PARALLELISM, Model, Parallelism
from tests.webapp.diagnosis.building import EIGHT, kvm_guest, matrix
from webapp.diagnosis.case import Case, OptionStatus, Path, Verdict
from webapp.diagnosis.diagnosis import Diagnosis, diagnose, judge
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.prediction.communication import BEFORE, communication
from webapp.diagnosis.situation import Situation

Readings = list[Reading[Any]]
NO_SPACE = BAR_FAILURES.known((BarFailure("0000:01:00.0", 1, "no space"),), lines=(7,))
FELL = XID_EVENTS.known((XidEvent("0000:01:00.0", 79, "fallen off the bus"),), lines=(7,))
BUS = PCI_GPUS.known((PciGpu("0000:01:00.0", name="GB202GL"),), lines=(2,))


def counted(listed: int, on_bus: int = 8, *missing: str) -> Readings:
    smi = GPU_COUNT_SMI.known(listed, lines=(3,), missing=missing)
    return [smi, GPU_COUNT_PCI.known(on_bus, lines=(2,))]


def in_order(*stages: Readings) -> Facts:
    """Each stage after a change."""
    given = [(r, epoch) for epoch, readings in enumerate(stages) for r in readings]
    return Facts.of(
        Sourced(reading, f"{reading.fact_id}@{epoch:012x}", epoch, order)
        for order, (reading, epoch) in enumerate(given, 1)
    )


def told(name: str, *stages: Readings) -> Verdict:
    return judge(in_order(*stages)).verdicts[name]


def case(*stages: Readings) -> Case:
    return judge(in_order(*stages))


def said(*stages: Readings) -> Diagnosis:
    return diagnose(in_order(*stages))


@pytest.mark.parametrize(
    ("stages", "kind"),
    [
        (([NO_SPACE],), "supported"),
        (([NO_SPACE, *counted(2)],), "supported"),
        (([NO_SPACE, *counted(8)],), "refuted"),  # listed again since the log
        (([NO_SPACE], counted(8)), "refuted"),
        ((counted(8), [NO_SPACE]), "supported"),  # lost with the last change
        (([*counted(8), NO_SPACE],), "open"),  # which of both is newer is not known
    ],
)
def test_a_driver_that_lists_all_gpus_since_the_log_has_the_last_word(stages: tuple[Readings, ...], kind: str) -> None:
    got = told("bar_space_shortage", *stages)
    assert got.kind == kind
    assert any("could not place" in claim.text for claim in got.for_)


def test_what_was_short_before_is_told_as_history_and_recommends_nothing() -> None:
    found = said([NO_SPACE, *counted(8), BUS])
    assert found.verdicts["bar_space_shortage"].for_[0].text.startswith("before that, ")
    assert found.advice["mmio_window"].status is OptionStatus.POSSIBLE
    (lost,) = [f for f in found.findings if f.id == "gpus_lost_to_space"]
    assert lost.severity == "info"
    assert lost.claims[1].text == "all 8 are listed again by a later output"


def test_a_region_without_an_address_counts_as_long_as_nothing_newer_lists_its_gpu() -> None:
    empty = BARS.known((Bar("0000:01:00.0", 1, 0),), lines=(4,))
    assert told("bar_space_shortage", [*counted(8), empty]).kind == "supported"
    assert told("bar_space_shortage", [empty], counted(8)).kind == "refuted"


def test_a_part_of_a_list_and_lists_of_two_states_miss_no_gpu() -> None:
    for stages in (
        [counted(2, 8, "rows after GPU1")],
        [[GPU_COUNT_PCI.known(8, lines=(2,))], [GPU_COUNT_SMI.known(4, lines=(3,))]],
    ):
        found = said(*stages)
        assert found.verdicts["gpu_lost"].kind == "open"
        assert "gpu_count" not in {c.id for c in found.contradictions}
    assert told("gpu_lost", counted(2)).kind == "supported"


def test_a_gpu_that_fell_off_and_is_listed_again() -> None:
    assert told("gpu_lost", [FELL]).kind == "supported"
    assert told("gpu_lost", [*counted(8), FELL]).kind == "supported"
    assert told("gpu_lost", [FELL, *counted(8)]).kind == "open"
    again = told("gpu_lost", [FELL], counted(8))
    assert (again.kind, len(again.for_)) == ("refuted", 1)


def test_an_all_reduce_that_came_back_since_is_no_hang() -> None:
    hung = ALLREDUCE.known(AllReduceResult((), True, environment={"outcome": "hang"}), lines=(1,))
    back = ALLREDUCE.known(AllReduceResult((), True), lines=(1,))
    control = ALLREDUCE.known(AllReduceResult((), False), lines=(1,))
    assert told("hang", [hung, control]).kind == "supported"
    assert told("hang", [hung], [back]).kind == "open"
    assert told("hang", [hung, back]).kind == "open"


def test_the_vm_s_newer_configuration_says_whether_kvm_is_hidden() -> None:
    hidden: Readings = [VIRT_KIND.known("qemu", lines=(1,)), KVM_VISIBLE.known(False, lines=(2,))]
    seen: Readings = [VIRT_KIND.known("kvm", lines=(1,)), KVM_VISIBLE.known(True, lines=(2,))]
    assert told("kvm_hidden", hidden, [VM_CPU_HIDDEN.known(False, lines=(1,))]).kind == "open"
    assert told("kvm_hidden", seen, [VM_CPU_HIDDEN.known(True, lines=(1,))]).kind == "supported"
    assert told("kvm_hidden", [VM_CPU_HIDDEN.known(True, lines=(1,))], seen).kind == "refuted"


def test_links_and_heat_of_before_a_change_are_not_those_of_now() -> None:
    watched = GpuTelemetry(
        "0", 50, pcie_gen=1, pcie_width=16, throttle_reasons=("hardware slowdown",), throttled_percent=50.0
    )
    old = TELEMETRY.known((watched,), lines=(9,))
    gpu = replace(
        EIGHT[0],
        utilisation_percent=100,
        power_w=300.0,
        power_limit_w=600.0,
        temperature_celsius=60,
        pcie_gen=5,
        pcie_gen_max=5,
        pcie_width=16,
        pcie_width_max=16,
    )
    now = GPUS.known((gpu,), lines=(3,))
    for name in ("pcie_link_degraded", "power_or_thermal_limit"):
        assert told(name, [now, old]).kind == "supported"
        assert told(name, [old], [now]).kind == "refuted"


def clique(present: bool) -> Reading[Any]:
    seen = (Clique(f"0000:0{i}:00.0", 0 if present else None) for i in range(8))
    return CLIQUE_CAPABILITY.known(tuple(seen), lines=(1,))


def test_a_refusal_of_before_the_clique_is_not_the_driver_s_answer_to_it() -> None:
    """The old code said “the clique is there, and still the driver refuses”."""
    found = said(kvm_guest(P2pCode.NS), [clique(present=True)])
    driver = next(g for g in found.ladder if g.gate == "driver")
    assert driver.state == "unknown"
    assert "read before the last change only (NS on 56 ordered pairs)" in driver.why
    assert found.verdicts["p2p_denied_other"].kind == "open"
    assert "refuses" not in found.headline + found.summary


def test_an_ok_of_before_the_clique_was_taken_away_is_no_permission() -> None:
    found = case(kvm_guest(P2pCode.OK), [clique(present=False)])
    driver = found.gate("driver")
    assert driver
    assert driver.state == "unknown"


def test_a_refusal_with_a_clique_of_the_same_state_stays_one() -> None:
    found = case([*kvm_guest(P2pCode.NS), clique(present=True)])
    assert found.verdicts["p2p_denied_other"].kind == "supported"


def test_a_fabric_that_was_not_up_before_the_driver_allowed_nvlink() -> None:
    down = FABRIC.known(Fabric("In Progress"), lines=(1,))
    allowed = [f.known(matrix(8, P2pCode.OK), lines=(2,)) for f in (P2P_READ, P2P_WRITE, P2P_NVLINK)]
    cards = GPUS.known(EIGHT, lines=(3,))
    assert told("nvlink_fabric_down", [down, cards, *allowed]).kind == "supported"
    found = case([down, cards], allowed)
    fabric = found.gate("fabric", Path.NVLINK)
    assert fabric
    assert fabric.state == "unknown"
    assert found.verdicts["nvlink_fabric_down"].kind == "refuted"


def reduced(time_us: float, *, p2p: bool, transport: str) -> Reading[Any]:
    rows = (AllReduceRow(12288, time_us, 8, graph=True, wrong=0),)
    return ALLREDUCE.known(AllReduceResult(rows, p2p, environment={"transport": transport}), lines=(1,))


WORK: Readings = [MODEL.known(Model("m", 78, 6144, 2)), PARALLELISM.known(Parallelism(tp=8))]


def test_all_reduces_of_before_a_change_do_not_widen_the_bound() -> None:
    old = [*WORK, reduced(60.0, p2p=False, transport="SHM")]
    found = communication(Situation(in_order(old, [reduced(30.0, p2p=False, transport="SHM")])), 1)
    assert found.comm_ms == pytest.approx((156 * 0.030, 156 * 0.030))


def test_an_all_reduce_that_was_allowed_p2p_and_took_shm_is_none_over_p2p() -> None:
    took_shm = communication(Situation(in_order([*WORK, reduced(60.0, p2p=True, transport="SHM")])), 1)
    assert took_shm.comm_ms == pytest.approx((156 * 0.060, 156 * 0.060))
    assert "all-reduces over P2P as measured here" not in took_shm.assumes
    both = [reduced(60.0, p2p=False, transport="SHM"), reduced(30.0, p2p=True, transport="P2P/IPC")]
    took_p2p = communication(Situation(in_order([*WORK, *both])), 1)
    assert took_p2p.p2p_ms == pytest.approx((156 * 0.030, 156 * 0.030))


def test_a_clean_log_of_after_a_change_outlives_what_was_amiss() -> None:
    """The old code kept a known failure for ever: an absence was never newer than it."""
    clean = BAR_FAILURES.absent("no region went without an address since the boot", lines=(1,))
    assert told("bar_space_shortage", [NO_SPACE], [clean]).kind == "refuted"
    assert told("bar_space_shortage", [NO_SPACE, clean]).kind == "supported"
    assert told("bar_space_shortage", [clean], [NO_SPACE]).kind == "supported"


def test_a_refusal_to_a_user_hides_no_answer_to_root() -> None:
    root = BAR_FAILURES.absent("no region went without an address since the boot", lines=(1,))
    user = BAR_FAILURES.not_run("reading the kernel log was refused")
    assert told("bar_space_shortage", [root, user]).kind == "refuted"
    assert told("bar_space_shortage", [root], [user]).kind == "refuted"


def test_a_clique_that_is_configured_since_is_not_recommended_once_more() -> None:
    """The old code went on: “refuses, most likely because the VM grants no clique”."""
    args = " ".join(f"-set device.hostpci{i}.x-nv-gpudirect-clique=0" for i in range(8))
    devices = tuple(HostPci(i, mapping="gpu") for i in range(8))
    vm = Vm(128, hostpci=devices, args=args, config={"args": args})
    before = [*kvm_guest(P2pCode.NS), VMS.known((replace(vm, args=None, config={"cores": "8"}),))]
    assert said(before).advice["gpudirect_clique"].status is OptionStatus.RECOMMENDED
    found = said(before, [VMS.known((vm,))])
    driver = next(g for g in found.ladder if g.gate == "driver")
    assert driver.state == "unknown"
    assert found.verdicts["p2p_denied_no_clique"].kind == "open"
    assert found.advice["gpudirect_clique"].status is OptionStatus.POSSIBLE
    assert "refuse" not in found.headline + found.summary


def test_a_bound_from_copies_of_before_a_change_says_so() -> None:
    rows = (CopyRow(CopyPath.PEER, "0", "1", 12288, 13.7),)
    copies = COPY.known(CopyResult(rows), lines=(1,))
    assert BEFORE in communication(Situation(in_order([*WORK, copies], [GPUS.known(EIGHT)])), 1).assumes
    assert BEFORE not in communication(Situation(in_order([*WORK, copies])), 1).assumes


def test_what_was_not_read_since_is_shown_by_its_first_line() -> None:
    found = said([P2P_READ.known(matrix(2, P2pCode.NS), lines=(5, 6, 7)), *counted(2, 2)], counted(2, 2))
    (unread,) = [finding for finding in found.findings if finding.id == "not_read_since"]
    (claim,) = unread.claims
    assert claim.text == "read before the last change and not since: Peer reads, driver’s answer"
    assert [(ref.source, ref.line) for ref in claim.evidence] == [("guest.p2p_read@000000000000", 5)]
