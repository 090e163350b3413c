"""Each rule: something that sets it off, and something near it that does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import Reading
from agents.facts.bench import COPY, SERVING, CopyResult, RejectedRow, ServingRow
from agents.facts.gpu import CLIQUE_CAPABILITY, GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS, Clique
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2P_NVLINK, P2P_READ, TOPOLOGY, P2pCode
from agents.facts.platform import DRIVER_VERSION, KVM_VISIBLE, MACHINE_TYPE, PRODUCT_UUID, VIRT_KIND, MachineType
from agents.facts.vm import (
    VM_ARGS,
    VM_CPU_HIDDEN,
    VM_HOSTPCI,
    VM_MACHINE,
    VM_QEMU_ARGS,
    VM_UUID,
    VMS,
    HostPci,
    QemuCommand,
    QemuDevice,
    Vm,
)
from agents.facts.workload import GOAL, MODEL, NOTES, OBSERVED, PARALLELISM, Goal, Model, Observed, Parallelism
from tests.webapp.diagnosis.building import EIGHT, facts_of, matrix, sourced, topology
from webapp.diagnosis.case import Bound, Case
from webapp.diagnosis.contradictions import all_rules, find
from webapp.diagnosis.contradictions.gain_above_bound import claimed_gain
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation import Situation

Given = list[Reading[Any] | Bound]

BOUND = Bound(1, max_gain_remove_comm=(1.02, 1.49))
CARDS = tuple(replace(gpu, vram_mib=97887) for gpu in EIGHT)
MODEL_744 = MODEL.known(Model("Large-NVFP4", total_params=744e9, weight_bytes=(410e9, 440e9)), lines=(1,))
CLIQUE_ARGS = VM_ARGS.known("-set device.hostpci0.x-nv-gpudirect-clique=0", lines=(3,))


def _copied(gpus: str) -> Reading[Any]:
    return COPY.known(CopyResult((), environment={"gpus": gpus}), lines=(2,))


def _notes(text: str) -> Reading[Any]:
    return NOTES.known(text, lines=(1,))


def _busy(power_w: float) -> Reading[Any]:
    gpu = replace(EIGHT[0], utilisation_percent=100, power_w=power_w, power_limit_w=600.0)
    return GPUS.known((gpu,), lines=(1,))


def _observed(output: float, total: float | None = None) -> Reading[Any]:
    row = Observed(64, (output, output), (total, total) if total else None)
    return OBSERVED.known((row,), lines=(1,))


def _vm(**changes: Any) -> Reading[Any]:
    vm = Vm(id=7, hostpci=(HostPci(0, mapping="gpu", pcie=True),), config={"cores": "8"}, key_lines={"hostpci0": 4})
    return VMS.known((replace(vm, **changes),), lines=(1,))


def _command(**changes: Any) -> Reading[Any]:
    command = QemuCommand(7, True, "pc-q35-10.1", devices=(QemuDevice("hostpci0", None),))
    return VM_QEMU_ARGS.known(replace(command, **changes), lines=(1,))


REJECTED = RejectedRow(5, "4 MB 32.14 GB/s 97.9 us", 42.8, 32.14)

CASES: dict[str, tuple[Given, Given]] = {
    "gpu_count": (
        [GPU_COUNT_PCI.known(8, lines=(1,)), GPU_COUNT_SMI.known(2, lines=(1,))],
        [GPU_COUNT_PCI.known(8, lines=(1,)), GPU_COUNT_SMI.known(8, lines=(1,))],
    ),
    "row_arithmetic": (
        [COPY.known(CopyResult((), (REJECTED,)), lines=(1,))],
        [COPY.known(CopyResult(()), lines=(1,))],
    ),
    "busy_without_tokens": ([_busy(110.0), _observed(0.0)], [_busy(110.0), _observed(11.0)]),
    "total_as_output": (
        [_observed(250.0, 485.0), _notes("64 concurrent give 485 tok/s")],
        [_observed(250.0, 485.0), _notes("64 concurrent give 250 tok/s")],
    ),
    "layout_does_not_fit": (
        [MODEL_744, GPUS.known(CARDS, lines=(1,)), _notes("TP4 on GPUs 4-7")],
        [MODEL_744, GPUS.known(CARDS, lines=(1,)), _notes("TP4+PP2 on all eight")],
    ),
    "gain_above_bound": (
        [_notes("P2P could give 2-3x throughput"), BOUND],
        [_notes("we have 8x RTX PRO 6000 on Gen5 x16, hope for 1.2x"), BOUND],
    ),
    "pcie_without_q35": ([_vm()], [_vm(machine="q35")]),
    "driver_differs": (
        [GPUS.known((replace(EIGHT[0], driver="1.0"), replace(EIGHT[1], driver="1.1")), lines=(1,))],
        [GPUS.known((replace(EIGHT[0], driver="1.0"),), lines=(1,)), DRIVER_VERSION.known("1.0")],
    ),
    "refused_but_used": (
        [
            P2P_READ.known(matrix(2, P2pCode.NS), lines=(1,)),
            NCCL_TRANSPORTS.known(NcclTransports(p2p=4), lines=(1,)),
        ],
        [
            P2P_READ.known(matrix(2, P2pCode.OK), lines=(1,)),
            NCCL_TRANSPORTS.known(NcclTransports(p2p=4), lines=(1,)),
        ],
    ),
    "nvlink_listed_but_refused": (
        [
            TOPOLOGY.known(topology(2, "NV4"), lines=(1,)),
            P2P_NVLINK.known(matrix(2, P2pCode.NS), lines=(1,)),
        ],
        [
            TOPOLOGY.known(topology(2, "PHB"), lines=(1,)),
            P2P_NVLINK.known(matrix(2, P2pCode.NS), lines=(1,)),
        ],
    ),
    "machine_type_differs": (
        [MACHINE_TYPE.known(MachineType.I440FX, lines=(1,)), VM_MACHINE.known(MachineType.Q35)],
        [MACHINE_TYPE.known(MachineType.PXB, lines=(1,)), VM_MACHINE.known(MachineType.Q35)],
    ),
    "hostpci_count": (
        [GPU_COUNT_PCI.known(8, lines=(1,)), VM_HOSTPCI.known((HostPci(0, mapping="g"),))],
        [
            GPU_COUNT_PCI.known(1, lines=(1,)),
            VM_HOSTPCI.known((HostPci(0, ("0000:01:00.0", "0000:01:00.1")),)),
        ],
    ),
    "uuid_differs": (
        [PRODUCT_UUID.known("aa-1", lines=(1,)), VM_UUID.known("aa-2", lines=(1,))],
        [PRODUCT_UUID.known("AA-1", lines=(1,)), VM_UUID.known("aa-1", lines=(1,))],
    ),
    "not_restarted": ([CLIQUE_ARGS, _command()], [CLIQUE_ARGS, _command(global_clique=0)]),
    "weights_size": (
        [MODEL_744, _notes("the weights are 296 GB")],
        [MODEL_744, _notes("the weights are 420 GB, RAM is 432 GB")],
    ),
    "measured_elsewhere": (
        [GPUS.known(CARDS, lines=(1,)), _copied("NVIDIA H200, NVIDIA H200")],
        [GPUS.known(CARDS, lines=(1,)), _copied(str(CARDS[0].name))],
    ),
    "sources_disagree": ([], []),
}  # fmt: skip


def _ids(given: Given) -> set[str]:
    bounds = tuple(item for item in given if isinstance(item, Bound))
    facts = facts_of(*(item for item in given if isinstance(item, Reading)))
    return {contradiction.id for contradiction in find(Case(Situation(facts), bounds=bounds))}


def test_every_rule_has_its_cases() -> None:
    assert set(CASES) == {rule.id for rule in all_rules()}


@pytest.mark.parametrize("rule_id", sorted(set(CASES) - {"sources_disagree"}))
def test_a_rule_fires_and_stays_silent(rule_id: str) -> None:
    fires, silent = CASES[rule_id]
    assert rule_id in _ids(fires)
    assert rule_id not in _ids(silent)


def test_a_contradiction_names_its_lines() -> None:
    for fires, _ in CASES.values():
        bounds = tuple(item for item in fires if isinstance(item, Bound))
        facts = facts_of(*(item for item in fires if isinstance(item, Reading)))
        assert all(c.evidence and c.text for c in find(Case(Situation(facts), bounds=bounds)))
    broken = find(Case(Situation(facts_of(_vm()))))
    assert [ref.line for ref in broken[0].evidence] == [4]


def _two(first: Reading[Any], second: Reading[Any], epoch: int = 0) -> set[str]:
    items = [Sourced(first, "a@1"), Sourced(second, "b@2", epoch)]
    return {c.id for c in find(Case(Situation(Facts.of(items))))}


def test_two_sources_of_one_epoch() -> None:
    ns, ok = (P2P_READ.known(matrix(2, code), lines=(1,)) for code in (P2pCode.NS, P2pCode.OK))
    assert "sources_disagree" in _two(ns, ok)
    assert "sources_disagree" not in _two(ns, ok, epoch=1), "between epochs it is a change"
    assert "sources_disagree" not in _two(ns, ns)


def test_outputs_from_before_and_after_a_change_show_the_change() -> None:
    board = MACHINE_TYPE.known(MachineType.Q35, lines=(1,))
    configured = VM_MACHINE.known(MachineType.I440FX, lines=(1,))
    assert "machine_type_differs" in _two(configured, board)
    assert "machine_type_differs" not in _two(configured, board, epoch=1)


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [("kvm", "qemu", False), ("kvm", "docker", False), ("kvm", "none", True), ("xen", "kvm", True)],
)
def test_names_of_one_virtualisation(first: str, second: str, clash: bool) -> None:
    got = _two(VIRT_KIND.known(first, lines=(1,)), VIRT_KIND.known(second, lines=(1,)))
    assert ("sources_disagree" in got) is clash


@pytest.mark.parametrize(("header", "clash"), [("NVIDIA H200", True), ("H200 MIG 1g.18gb", True), ("", False)])
def test_a_benchmark_of_other_cards(header: str, clash: bool) -> None:
    assert ("measured_elsewhere" in _ids([GPUS.known(CARDS, lines=(1,)), _copied(header)])) is clash
    own = f"{str(CARDS[0].name).removeprefix('NVIDIA ')} MIG 1g.24gb"
    assert "measured_elsewhere" not in _ids([GPUS.known(CARDS, lines=(1,)), _copied(own)])


def test_a_pending_pcie_flag_counts_and_a_pending_machine_too() -> None:
    plain = {"hostpci": (HostPci(0, mapping="gpu"),)}
    pending = {"hostpci0": "mapping=gpu,pcie=1"}
    assert _ids([_vm(**plain, pending=pending)]) == {"pcie_without_q35"}
    assert _ids([_vm(**plain, pending={**pending, "machine": "q35"})]) == set()
    assert _ids([_vm(filtered=True)]) == set(), "the machine line may have been left out"


def test_ordinary_decode_is_no_contradiction() -> None:
    assert _ids([_busy(330.0)]) == set()
    assert _ids([_busy(100.0)]) == {"busy_without_tokens"}


@pytest.mark.parametrize(("watts", "said"), [((90.0,), "15 %"), ((84.0, 126.0), "14 to 21 %")])
def test_waiting_gpus_are_told_with_what_they_draw(watts: tuple[float, ...], said: str) -> None:
    cards = [gpu for power_w in watts for gpu in _busy(power_w).value or ()]
    (found,) = find(Case(Situation(facts_of(GPUS.known(tuple(cards), lines=(7,)), _observed(0.0)))))
    assert f"at {said} of their power limit, below 25 %" in found.text
    assert 7 in {ref.line for ref in found.evidence}


def test_a_goal_out_of_reach_contradicts_nothing() -> None:
    goal = GOAL.known(Goal(single_stream_tokens_per_s=100.0), lines=(1,))
    out_of_reach = replace(BOUND, goal_reachable_by_p2p=False)
    assert "gain_above_bound" not in _ids([goal, out_of_reach])
    hoped = _notes("P2P shall make it 3x faster")
    assert "gain_above_bound" in _ids([goal, out_of_reach, hoped])


def test_an_output_rate_that_is_the_benchmarks_total() -> None:
    rows = SERVING.known((ServingRow(64, 250.0, 485.0),), lines=(1,))
    assert "total_as_output" in _ids([rows, _observed(485.0)])
    assert "total_as_output" not in _ids([rows, _observed(250.0)])


def test_a_total_that_is_said_to_be_one_is_no_contradiction() -> None:
    said = _notes("64 concurrent: about 485 tok/s, of which about 211-250 are output")
    assert "total_as_output" not in _ids([_observed(250.0, 485.0), said])


def test_the_layout_in_use_is_judged_too() -> None:
    cards = GPUS.known(CARDS, lines=(1,))
    assert "layout_does_not_fit" in _ids([MODEL_744, cards, PARALLELISM.known(Parallelism(tp=4))])
    assert "layout_does_not_fit" not in _ids([MODEL_744, cards, PARALLELISM.known(Parallelism(tp=8))])


def test_what_is_configured_and_not_seen() -> None:
    none = CLIQUE_CAPABILITY.known((Clique("0000:01:00.0", None),), lines=(1,))
    assert "not_restarted" in _ids([CLIQUE_ARGS, none])
    hidden = [VM_CPU_HIDDEN.known(True, lines=(1,)), KVM_VISIBLE.known(True, lines=(1,))]
    assert "not_restarted" in _ids([*hidden])


def test_no_vm_has_the_guests_uuid() -> None:
    vms = VMS.known((Vm(id=1, uuid="bb-1"), Vm(id=2, uuid="bb-2")), lines=(1,))
    assert "uuid_differs" in _ids([PRODUCT_UUID.known("aa-1", lines=(1,)), vms])
    unsure = VMS.known((Vm(id=1, uuid="bb-1"), Vm(id=2)), lines=(1,))
    assert "uuid_differs" not in _ids([PRODUCT_UUID.known("aa-1", lines=(1,)), unsure])


@pytest.mark.parametrize(
    ("text", "gain"),
    [
        ("2x or 3x throughput", 2.0),
        ("2–3× faster", 2.0),
        ("this could double or triple it", 2.0),
        ("1.5 x", 1.5),
        ("8x RTX PRO 6000, 4 x 96 GB, 2x H200, Gen5 x16", None),
        ("1x", None),
        ("", None),
    ],
)
def test_gains_in_words(text: str, gain: float | None) -> None:
    assert claimed_gain(text) == gain


@settings(max_examples=50)
@given(notes=st.text(max_size=200))
def test_no_words_make_a_rule_raise(notes: str) -> None:
    facts = Facts.of(sourced(_notes(notes), MODEL_744, GPUS.known(CARDS), _observed(250.0, 485.0)))
    assert isinstance(find(Case(Situation(facts), bounds=(BOUND,))), tuple)
