from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import Reading
from agents.facts.bench import ALLREDUCE, DELIVERY, SERVING, AllReduceResult, AllReduceRow, DeliveryResult, ServingRow
from agents.facts.gpu import CLIQUE_CAPABILITY, FABRIC, GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS, Clique, Fabric
from agents.facts.host import PLATFORM, VFIO_BACKEND, VFIO_ERRORS, Platform, VfioBackend, VfioError
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2P_NVLINK, P2P_PCIE, P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode
from agents.facts.platform import VIRT_KIND
from agents.facts.vm import VM_ARGS, VM_CLIQUE, VM_HOSTPCI, VM_ID, VM_QEMU_ARGS, HostPci, QemuCommand, QemuDevice
from agents.facts.workload import OBSERVED, PARALLELISM, Observed, Parallelism
from agents.parsing import topo_p2p
from tests.corpus import MEASUREMENTS, needs_corpus
from tests.webapp.diagnosis.building import EIGHT, facts_of, kvm_guest, matrix, sourced, topology
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.catalogue import all_rungs
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.ladder import judge_ladder
from webapp.diagnosis.situation import Situation

ORDER = ["fabric", "mapped", "granted", "driver", "delivered", "collective", "used", "worth"]
TP8 = PARALLELISM.known(Parallelism(tp=8), lines=(1,))


def _gate(name: str, *readings: Reading[Any], path: Path = Path.PCIE) -> Gate:
    return _of(facts_of(*readings), name, path)


def _of(facts: Facts, name: str, path: Path = Path.PCIE) -> Gate:
    return next(g for g in judge_ladder(Situation(facts)) if g.gate == name and g.path is path)


def _states(*readings: Reading[Any], path: Path = Path.PCIE) -> dict[str, str]:
    return {g.gate: str(g.state) for g in judge_ladder(Situation(facts_of(*readings))) if g.path is path}


def test_the_gates_in_their_order() -> None:
    assert [rung.id for rung in all_rungs()] == ORDER


def test_first_measurements_alone_leave_every_gate_unknown() -> None:
    observed = OBSERVED.known((Observed(1, output_tokens_per_s=(11, 11)),), lines=(1,))
    assert _states(TP8, observed) == dict.fromkeys(ORDER, "unknown")


@pytest.mark.parametrize(
    "reading", [GPUS.known(EIGHT[:1], lines=(1,)), PARALLELISM.known(Parallelism(tp=1), lines=(1,))]
)
def test_one_gpu_or_tensor_parallel_1_has_no_ladder(reading: Reading[Any]) -> None:
    assert _states(reading) == dict.fromkeys(ORDER, "not_applicable")


def test_ns_in_a_kvm_guest() -> None:
    facts = facts_of(TP8, *kvm_guest(P2pCode.NS))
    driver, granted = _of(facts, "driver"), _of(facts, "granted")
    assert driver.state is GateState.FAIL
    assert "NS on 56 of 56 ordered pairs" in driver.why
    assert "not a measurement" in driver.why
    assert driver.evidence
    assert granted.state is GateState.UNKNOWN
    assert (granted.expected or "").startswith("absent")
    others = {g.gate: g.state for g in judge_ladder(Situation(facts)) if g.gate != "driver"}
    assert set(others.values()) == {GateState.UNKNOWN}


def test_ok_needs_reads_and_writes_and_every_row() -> None:
    reads = P2P_READ.known(matrix(8, P2pCode.OK), lines=(2,))
    assert _gate("driver", TP8, reads).state is GateState.UNKNOWN
    writes = P2P_WRITE.known(matrix(8, P2pCode.OK), lines=(3,))
    assert _gate("driver", TP8, reads, writes).state is GateState.PASS
    cut = matrix(8, P2pCode.OK)
    cut = replace(cut, codes=(*cut.codes[:5], *(((None,) * 8,) * 3)))
    partly = P2P_READ.known(cut, lines=(2,), missing=("row GPU5",))
    assert _gate("driver", TP8, partly, writes).state is GateState.UNKNOWN


def test_one_refused_write_fails_and_says_which_code() -> None:
    reads = P2P_READ.known(matrix(4, P2pCode.OK), lines=(2,))
    writes = P2P_WRITE.known(matrix(4, P2pCode.OK, (0, 3, P2pCode.CNS)), lines=(3,))
    gate = _gate("driver", reads, writes)
    assert gate.state is GateState.FAIL
    assert "CNS on 1 of 12 ordered pairs" in gate.why
    assert "chipset" in gate.why


def test_a_matrix_of_ok_is_not_a_delivery() -> None:
    gate = _gate("delivered", *kvm_guest(P2pCode.OK, 2))
    assert gate.state is GateState.UNKNOWN
    assert "do not show it" in gate.why


# -- granted


def test_the_clique_in_config_space_decides() -> None:
    def seen(*ids: int | None) -> Reading[Any]:
        found = tuple(Clique(f"0000:0{i}:00.0", c, 0xC8 if c is not None else None) for i, c in enumerate(ids))
        return CLIQUE_CAPABILITY.known(found, lines=(9,))

    guest = kvm_guest(P2pCode.NS, 2)
    assert _gate("granted", *guest, seen(0, 0)).state is GateState.PASS
    assert "nothing is granted across" in _gate("granted", *guest, seen(0, 1)).why
    assert _gate("granted", *guest, seen(None, None)).state is GateState.FAIL
    assert "1 of 2" in _gate("granted", *guest, seen(0, None)).why
    assert _gate("granted", *guest, seen(0)).state is GateState.UNKNOWN


def test_refused_rights_are_not_an_absence() -> None:
    refused = CLIQUE_CAPABILITY.not_run("access denied", lines=(3,))
    assert _gate("granted", *kvm_guest(), refused).state is GateState.UNKNOWN


def test_the_running_line_then_the_config() -> None:
    def running(*cliques: int | None) -> Reading[Any]:
        devices = tuple(QemuDevice(f"hostpci{i}", None, clique=c) for i, c in enumerate(cliques))
        return VM_QEMU_ARGS.known(QemuCommand(128, True, devices=devices), lines=(1,))

    guest = [*kvm_guest(P2pCode.NS, 2), VM_ID.known(128, lines=(1,))]
    assert _gate("granted", *guest, running(0, 0)).state is GateState.PASS
    assert _gate("granted", *guest, running(0, 0, None)).state is GateState.PASS, "a NIC has none"
    assert _gate("granted", *guest, running(None, None)).state is GateState.FAIL
    cut = replace(running(None, None), missing=("the whole command line",))
    assert _gate("granted", *guest, cut).state is GateState.UNKNOWN
    config: list[Reading[Any]] = [VM_ARGS.absent("no args", lines=(4,)), VM_CLIQUE.absent("no args", lines=(4,))]
    gate = _gate("granted", *guest, *config)
    assert gate.state is GateState.FAIL
    assert "VM 128’s configuration has no args" in gate.why


@pytest.mark.parametrize(
    "devices", [VM_HOSTPCI.absent("no hostpci"), VM_HOSTPCI.known((HostPci(0, mapping="gpu"),), lines=(2,))]
)
def test_a_vm_with_fewer_than_two_devices_has_nothing_to_grant(devices: Reading[Any]) -> None:
    config: list[Reading[Any]] = [VM_ARGS.absent("no args", lines=(4,)), VM_CLIQUE.absent("no args", lines=(4,))]
    assert _gate("granted", TP8, devices, *config).state is GateState.UNKNOWN


def test_a_clique_only_in_the_config_is_no_pass() -> None:
    configured = VM_CLIQUE.known({"hostpci0": 0, "hostpci1": 0}, lines=(4,))
    gate = _gate("granted", *kvm_guest(P2pCode.NS, 2), configured)
    assert gate.state is GateState.UNKNOWN
    assert gate.expected == "granted once the VM was started with it"


@pytest.mark.parametrize("kind", ["none", "vmware", "microsoft"])
def test_without_kvm_there_is_no_clique_to_grant(kind: str) -> None:
    gate = _gate("granted", TP8, VIRT_KIND.known(kind, lines=(1,)))
    assert gate.state is GateState.NOT_APPLICABLE


# -- changes between epochs


def test_a_verdict_from_before_the_drivers_answer_changed_is_none() -> None:
    absent: list[Reading[Any]] = [VM_ARGS.absent("no args", lines=(4,)), VM_CLIQUE.absent("no args", lines=(4,))]
    shm = NCCL_TRANSPORTS.known(NcclTransports(shm=8), lines=(5,))
    before = sourced(*kvm_guest(P2pCode.NS), *absent, shm)
    still = Facts.of([*before, *sourced(*kvm_guest(P2pCode.NS), epoch=1)])
    assert _of(still, "granted").state is GateState.FAIL
    assert _of(still, "used").state is GateState.FAIL
    turned = Facts.of([*before, *sourced(*kvm_guest(P2pCode.OK), epoch=1)])
    assert _of(turned, "driver").state is GateState.PASS
    assert _of(turned, "granted").state is GateState.UNKNOWN
    assert _of(turned, "used").state is GateState.UNKNOWN
    assert "before: the NCCL log shows 8" in _of(turned, "used").why


def test_a_newer_configuration_counts_before_an_older_running_line() -> None:
    bare = QemuCommand(128, True, devices=(QemuDevice("hostpci0", None),) * 8)
    before = sourced(*kvm_guest(P2pCode.NS), VM_QEMU_ARGS.known(bare, lines=(1,)))
    cliques = {f"hostpci{i}": 0 for i in range(8)}
    after = sourced(VM_CLIQUE.known(cliques, lines=(4,)), epoch=1)
    gate = _of(Facts.of([*before, *after]), "granted")
    assert gate.state is GateState.UNKNOWN
    assert gate.why.startswith("the VM’s configuration sets a clique")


# -- fabric and mapped


def test_a_verified_copy_counts_for_the_fabric_only_without_a_vm() -> None:
    right = DELIVERY.known(DeliveryResult({"0->1": True, "1->0": True}), lines=(1,))
    guest = kvm_guest(P2pCode.OK, 2)
    assert _of(facts_of(*guest, right), "fabric").state is GateState.UNKNOWN
    live = sourced(VIRT_KIND.known("none", lines=(1,)), right)
    assert _of(Facts.of([*live, *sourced(*guest, epoch=1)]), "fabric").state is GateState.PASS
    bad = sourced(VIRT_KIND.known("none", lines=(1,)), DELIVERY.known(DeliveryResult({"0->1": False}), lines=(1,)))
    assert _of(Facts.of([*bad, *sourced(*guest, epoch=1)]), "fabric").state is GateState.FAIL


def test_separate_root_complexes_are_no_verdict() -> None:
    zen = PLATFORM.known(Platform(cpu="AMD EPYC 9335 32-Core Processor"), lines=(1,))
    gate = _gate("fabric", *kvm_guest(), zen)
    assert gate.state is GateState.UNKNOWN
    assert (gate.expected or "").startswith("possible")


def test_the_log_of_another_vms_start_is_no_verdict_on_this_one() -> None:
    type1 = VFIO_BACKEND.known(VfioBackend.TYPE1, lines=(1,))
    here = [*kvm_guest(P2pCode.OK), type1, VM_ID.known(128, lines=(1,))]

    def errors(*vms: int | None) -> Gate:
        found = tuple(VfioError(None, -22, "dma_map(…) = -22", vm) for vm in vms)
        return _gate("mapped", *here, VFIO_ERRORS.known(found, lines=(7,)))

    assert errors(131).state is GateState.UNKNOWN
    assert "another VM" in errors(131).why
    assert errors(131, 128).state is GateState.FAIL
    assert "(1 lines)" in errors(131, 128).why
    assert errors(None).state is GateState.FAIL, "a line that names no VM may be this one's"
    assert errors().state is GateState.PASS


def test_no_gpu_has_no_ladder() -> None:
    none = [GPU_COUNT_SMI.known(0, lines=(1,)), GPU_COUNT_PCI.known(0, lines=(1,))]
    assert _states(*none) == dict.fromkeys(ORDER, "not_applicable")


def test_mapped_needs_the_log_of_the_start() -> None:
    guest = kvm_guest()
    type1 = VFIO_BACKEND.known(VfioBackend.TYPE1, lines=(1,))
    clean = VFIO_ERRORS.known((), lines=(1,))
    part = VFIO_ERRORS.known((), lines=(1,), missing=("what QEMU said after the start",))
    error = VfioError("0000:01:00.0", -14, "vfio_container_dma_map(…) = -14 (Bad address)")
    assert _gate("mapped", *guest, type1).state is GateState.UNKNOWN
    assert _gate("mapped", *guest, clean).state is GateState.UNKNOWN
    assert _gate("mapped", *guest, type1, clean).state is GateState.PASS
    assert _gate("mapped", *guest, type1, part).state is GateState.UNKNOWN
    failed = VFIO_ERRORS.known((error,), lines=(7,))
    assert _gate("mapped", *guest, type1, failed).state is GateState.FAIL
    iommufd = VFIO_BACKEND.known(VfioBackend.IOMMUFD, lines=(1,))
    gate = _gate("mapped", *guest, iommufd, clean)
    assert gate.state is GateState.UNKNOWN
    assert (gate.expected or "").startswith("not mapped")
    bare = VIRT_KIND.known("none", lines=(1,))
    assert _gate("mapped", TP8, bare).state is GateState.NOT_APPLICABLE


# -- delivered, collective, used, worth


def test_delivery_over_a_refused_path_is_a_staged_copy() -> None:
    right = DELIVERY.known(DeliveryResult({"0->1": True, "1->0": True}), lines=(1,))
    assert _gate("delivered", *kvm_guest(P2pCode.NS, 2), right).state is GateState.UNKNOWN
    assert _gate("delivered", *kvm_guest(P2pCode.OK, 2), right).state is GateState.PASS
    assert _gate("delivered", *kvm_guest(P2pCode.OK, 3), right).state is GateState.UNKNOWN
    wrong = DELIVERY.known(DeliveryResult({"0->1": False, "1->0": True}), lines=(1,))
    gate = _gate("delivered", *kvm_guest(P2pCode.OK, 2), wrong)
    assert gate.state is GateState.FAIL
    assert "GPU0→GPU1" in gate.why


def test_a_verdict_on_collectives_names_the_line_that_names_the_transport() -> None:
    row = AllReduceRow(12288, 30.0, 2, wrong=0)
    arms = [
        ALLREDUCE.known(AllReduceResult((row,) * 5, p2p), lines=(first, *range(4, 8), first + 30))
        for first, p2p in ((2, True), (3, False))
    ]
    cited = {ref.line for ref in _gate("collective", *kvm_guest(P2pCode.OK, 2), *arms).evidence}
    assert {32, 33} <= cited


def _all_reduce(p2p: bool, wrong: int | None = 0, **environment: str) -> Reading[Any]:
    row = AllReduceRow(12288, 30.0, 2, wrong=wrong)
    return ALLREDUCE.known(AllReduceResult((row,), p2p, environment=environment), lines=(1,))


@pytest.mark.parametrize(
    ("arms", "state"),
    [
        ([_all_reduce(True), _all_reduce(False)], GateState.PASS),
        ([_all_reduce(True)], GateState.UNKNOWN),
        ([_all_reduce(True, wrong=3), _all_reduce(False)], GateState.FAIL),
        ([_all_reduce(True, outcome="hang"), _all_reduce(False)], GateState.FAIL),
        ([_all_reduce(True, wrong=3), _all_reduce(False, wrong=2)], GateState.UNKNOWN),
        ([_all_reduce(True, wrong=None), _all_reduce(False)], GateState.UNKNOWN),
        ([_all_reduce(True, transport="SHM/direct"), _all_reduce(False)], GateState.UNKNOWN),
    ],
)
def test_a_collective_needs_its_control(arms: list[Reading[Any]], state: GateState) -> None:
    assert _gate("collective", *kvm_guest(P2pCode.OK, 2), *arms).state is state


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (NcclTransports(p2p=16), GateState.PASS),
        (NcclTransports(shm=16), GateState.FAIL),
        (NcclTransports(p2p=8, shm=8), GateState.FAIL),
        (NcclTransports(net=2), GateState.FAIL),
        (NcclTransports(), GateState.UNKNOWN),
    ],
)
def test_what_the_log_shows_is_used(seen: NcclTransports, state: GateState) -> None:
    reading = NCCL_TRANSPORTS.known(seen, lines=(1,))
    assert _gate("used", *kvm_guest(P2pCode.OK), reading).state is state


def _ab(before: list[float], after: list[float]) -> Gate:
    def arm(rates: list[float], epoch: int, seen: NcclTransports) -> list[Any]:
        runs = [SERVING.known((ServingRow(1, rate),), lines=(1,)) for rate in rates]
        return sourced(NCCL_TRANSPORTS.known(seen, lines=(1,)), *runs, TP8, epoch=epoch)

    off, on = arm(before, 0, NcclTransports(shm=8)), arm(after, 1, NcclTransports(p2p=8))
    return _of(Facts.of([*off, *on]), "worth")


def test_worth_needs_more_than_one_run_an_arm() -> None:
    assert _ab([11.0], [12.0]).state is GateState.UNKNOWN
    assert _ab([11.0, 11.1, 11.2], [12.0, 12.1, 12.2]).state is GateState.PASS
    assert _ab([11.0, 11.1, 11.2], [10.0, 10.1, 10.2]).state is GateState.FAIL
    assert _ab([11.0, 11.5, 12.0], [11.2, 11.6, 12.1]).state is GateState.FAIL


# -- NVLink


def _nvlink_guest() -> list[Reading[Any]]:
    ok, ns = matrix(2, P2pCode.OK), matrix(2, P2pCode.NS)
    return [
        VIRT_KIND.known("kvm", lines=(1,)),
        TOPOLOGY.known(topology(2, "NV18"), lines=(2,)),
        *(fact.known(ok, lines=(3,)) for fact in (P2P_READ, P2P_WRITE, P2P_NVLINK)),
        P2P_PCIE.known(ns, lines=(3,)),
        FABRIC.known(Fabric("Completed", "Success"), lines=(4,)),
    ]


def test_a_guest_with_nvlink_is_healthy_though_pcie_says_ns() -> None:
    states = _states(*_nvlink_guest(), path=Path.NVLINK)
    assert states["driver"] == "pass"
    assert states["fabric"] == "pass"
    assert states["granted"] == states["mapped"] == "not_applicable"
    assert set(_states(*_nvlink_guest()).values()) == {"not_applicable"}


@pytest.mark.parametrize("fabric", [Fabric("In Progress"), Fabric("Completed", "Route Unhealthy")])
def test_a_fabric_that_is_not_up_fails(fabric: Fabric) -> None:
    ns = matrix(4, P2pCode.NS)
    readings: list[Reading[Any]] = [FABRIC.known(fabric, lines=(4,)), P2P_READ.known(ns, lines=(1,))]
    assert _gate("fabric", *readings, path=Path.NVLINK).state is GateState.FAIL
    assert _gate("driver", *readings, path=Path.NVLINK).state is GateState.FAIL


def test_bridged_pairs_and_the_rest_are_judged_apart() -> None:
    links = topology(4, "PHB")
    rows = [list(row) for row in links.links]
    for a, b in ((0, 1), (1, 0), (2, 3), (3, 2)):
        rows[a][b] = "NV4"
    bridged = replace(links, links=tuple(map(tuple, rows)))
    codes = [(a, b, P2pCode.OK) for a, b in ((0, 1), (1, 0), (2, 3), (3, 2))]
    facts = facts_of(
        VIRT_KIND.known("kvm", lines=(1,)),
        TOPOLOGY.known(bridged, lines=(2,)),
        P2P_READ.known(matrix(4, P2pCode.NS, *codes), lines=(3,)),
        P2P_WRITE.known(matrix(4, P2pCode.NS, *codes), lines=(4,)),
    )
    assert _of(facts, "driver", Path.NVLINK).state is GateState.PASS
    assert "NS on 8 of 8 ordered pairs" in _of(facts, "driver").why


@needs_corpus
def test_a_captured_nvlink_guest_shows_nothing_failed() -> None:
    folder = MEASUREMENTS / "h200x2" / "guest"
    read: list[Reading[Any]] = [VIRT_KIND.unsupported("not installed")]
    for letter, fact in (("r", P2P_READ), ("w", P2P_WRITE), ("n", P2P_NVLINK), ("p", P2P_PCIE)):
        text = (folder / f"topo-p2p-{letter}.txt").read_text().replace("\x1b[4m", "")
        found = topo_p2p.parse(text.replace("\x1b[0m", ""))
        assert found
        read.append(fact.known(found[0], lines=found[1]))
    ladder = judge_ladder(Situation(facts_of(*read)))
    assert GateState.FAIL not in {gate.state for gate in ladder}
    assert next(g for g in ladder if g.gate == "driver").state is GateState.PASS


@settings(max_examples=50)
@given(
    size=st.integers(2, 5),
    reads=st.sampled_from(P2pCode),
    writes=st.sampled_from(P2pCode),
    link=st.sampled_from(["PHB", "NV4", "SYS"]),
    kind=st.sampled_from(["kvm", "qemu", "none", "vmware", "docker", ""]),
)
def test_a_pass_or_fail_always_has_evidence(size: int, reads: P2pCode, writes: P2pCode, link: str, kind: str) -> None:
    ladder = judge_ladder(
        Situation(
            facts_of(
                VIRT_KIND.known(kind, lines=(1,)),
                TOPOLOGY.known(topology(size, link), lines=(2,)),
                P2P_READ.known(matrix(size, reads), lines=(3,)),
                P2P_WRITE.known(matrix(size, writes), lines=(4,)),
            )
        )
    )
    judged = [g for g in ladder if g.state in {GateState.PASS, GateState.FAIL}]
    assert judged
    assert all(gate.evidence and gate.why for gate in judged)
    driver = {g.state for g in ladder if g.gate == "driver"} - {GateState.NOT_APPLICABLE}
    expected = GateState.PASS if reads is writes is P2pCode.OK else GateState.FAIL
    assert driver == {expected}
    assert msgspec.json.encode(ladder)


@pytest.mark.parametrize(("kind", "expects"), [("kvm", True), ("vmware", False), ("docker", False)])
def test_what_is_expected_of_vfio_is_expected_of_kvm_alone(kind: str, expects: bool) -> None:
    gate = _gate("mapped", TP8, VIRT_KIND.known(kind, lines=(1,)))
    assert gate.state is GateState.UNKNOWN
    assert bool(gate.expected) is expects
