"""Where a rule decides between two values: each row is a case on one side, with what the rule must give."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import (
    COPY,
    PROFILE,
    SERVING,
    TELEMETRY,
    CopyPath,
    CopyResult,
    CopyRow,
    GpuTelemetry,
    Profile,
    RejectedRow,
    ServingRow,
    Timing,
)
from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS, Gpu
from agents.facts.host import ACS, GPU_PATHS, IOMMU_GROUPS, GpuPath, IommuGroup
from agents.facts.nccl import ENGINE, NCCL_TRANSPORTS, Engine, NcclTransports
from agents.facts.p2p import P2P_READ, TOPOLOGY, P2pCode
from agents.facts.platform import GUEST_IOMMU, MACHINE_TYPE, MEMORY_MIB, PHYS_BITS, VIRT_KIND, Iommu, MachineType
from agents.facts.vm import VM_ARGS, VM_CLIQUE, VM_MACHINE, VMS
from agents.facts.workload import MODEL, NOTES, OBSERVED, PARALLELISM, Model, Observed, Parallelism
from agents.parsing import qm_config
from tests.standin.pve_host import KPRO6
from tests.webapp.diagnosis.building import EIGHT, facts_of, kvm_guest, matrix, topology
from tests.webapp.diagnosis.hypothesis_cases import verdict
from webapp.diagnosis.answer.headline import headline
from webapp.diagnosis.case import Case, OptionStatus, VerdictKind
from webapp.diagnosis.claim import Basis, Claim, EvidenceRef
from webapp.diagnosis.compare.effects import minimum_detectable, runs_needed
from webapp.diagnosis.compare.fact_comparisons import names_of
from webapp.diagnosis.compare.p2p_status import p2p_status
from webapp.diagnosis.compare.serving import failing
from webapp.diagnosis.contradictions import find
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.prediction.bound import bounds
from webapp.diagnosis.prediction.communication import communication
from webapp.diagnosis.prediction.layouts import comm_per_token_ms
from webapp.diagnosis.prediction.step_floor import step_floor
from webapp.diagnosis.scripts import Do, phase_script
from webapp.diagnosis.scripts.model import ScriptError
from webapp.diagnosis.scripts.phase_script import host_parts
from webapp.diagnosis.scripts.values import hostpci
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.qemu_args import hides_kvm
from webapp.diagnosis.workload import read_workload

READ, TYPED = EvidenceRef("guest.gpus@000000000001", 3), EvidenceRef("workload@000000000002", 1)


def _clashes(*readings: Reading[Any]) -> dict[str, str]:
    return {clash.id: clash.text for clash in find(Case(Situation(facts_of(*readings)), ()))}


@pytest.mark.parametrize(
    ("basis", "evidence", "known"),
    [
        (Basis.MEASURED, (TYPED,), "said"),
        (Basis.ESTIMATED, (TYPED,), "estimated"),
        (Basis.MEASURED, (TYPED, READ), "measured"),
        (Basis.MEASURED, (), "measured"),
    ],
)
def test_only_a_measurement_that_was_typed_is_said(basis: Basis, evidence: tuple[EvidenceRef, ...], known: str) -> None:
    assert Claim("x", evidence, None, basis).known == known


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (None, {"hostpci0": 0}, ("clique",)),
        ({"hostpci0": 0}, {"hostpci0": 0}, ()),
        ({"hostpci0": 0}, {"hostpci0": 1}, ()),
    ],
)
def test_a_clique_is_a_change_when_it_is_new(before: Any, after: Any, changes: tuple[str, ...]) -> None:
    items = [Sourced(P2P_READ.known(matrix(2, P2pCode.NS)), "ab"[epoch], epoch) for epoch in (0, 1)]
    items += [Sourced(VM_CLIQUE.known(value), f"c{e}", e) for e, value in enumerate((before, after)) if value]
    items += [Sourced(VM_ARGS.known("-global …"), f"d{e}", e) for e, value in enumerate((before, after)) if value]
    status = p2p_status(Facts.of(items))
    assert status is not None
    assert status.changes == changes


def test_what_a_contradiction_rests_on_is_its_own() -> None:
    output_above_total = OBSERVED.known((Observed(4, (500.0, 500.0), (450.0, 450.0)),), lines=(1,))
    other_counts = (GPU_COUNT_SMI.known(4, lines=(1,)), GPU_COUNT_PCI.known(8, lines=(1,)))
    result = diagnose(facts_of(*kvm_guest(), output_above_total, *other_counts))
    reads = {clash.id: result.rests_on(f"contradictions.{clash.id}").used for clash in result.contradictions}
    assert OBSERVED.id in reads["total_as_output"]
    assert not any(OBSERVED.id in used for clash, used in reads.items() if clash != "total_as_output")
    assert len(reads) > 1


@pytest.mark.parametrize(("output", "total", "clash"), [(460.0, 450.0, True), (455.0, 450.0, False), (9.0, 9.0, False)])
def test_output_above_the_total_is_a_contradiction(output: float, total: float, clash: bool) -> None:
    observed = OBSERVED.known((Observed(4, (output, output), (total, total)),), lines=(1,))
    assert ("total_as_output" in _clashes(observed)) is clash


@pytest.mark.parametrize(
    ("guest", "vm", "told"), [("i440fx", "q35", True), ("q35", "q35", False), (None, "q35", False)]
)
def test_the_guests_board_of_before_is_told_beside_the_vms_of_now(guest: str | None, vm: str, told: bool) -> None:
    old = [Sourced(reading, f"{reading.fact_id}@a", 0, order) for order, reading in enumerate(kvm_guest())]
    old += [Sourced(MACHINE_TYPE.known(MachineType(guest)), "board@a", 0, 20)] if guest else []
    new = [
        Sourced(VM_MACHINE.known(MachineType(vm)), "vm@b", 1, 30),
        Sourced(P2P_READ.known(matrix(8, P2pCode.NS)), "p2p@b", 1, 31),
    ]
    findings = {finding.id: finding for finding in diagnose(Facts.of([*old, *new])).findings}
    texts = [claim.text for claim in findings["not_read_since"].claims]
    assert any("its VM has" in text for text in texts) is told


def test_a_row_left_out_without_a_line_of_its_own_cites_the_output() -> None:
    copies = CopyResult((), (RejectedRow(0, "4MB 32.14 GB/s 97.9 us", 42.8, 32.14), RejectedRow(7, "x", 1.0, 2.0)))
    findings = {f.id: f for f in diagnose(facts_of(COPY.known(copies, lines=(4,)))).findings}
    assert [claim.evidence[0].line for claim in findings["rejected_rows"].claims] == [4, 7]


@pytest.mark.parametrize(("us", "told"), [(15.0, True), (149.0, True), (201.0, False)])
def test_only_a_short_copy_is_explained_by_the_synchronise(us: float, told: bool) -> None:
    row = CopyRow(CopyPath.PEER, "0", "1", 12288, us, Timing.HOST_SYNC)
    findings = {f.id for f in diagnose(facts_of(COPY.known(CopyResult((row,)), lines=(1,)))).findings}
    assert ("host_synchronised" in findings) is told


def test_gpus_behind_one_switch_ask_for_acs_where_it_was_not_read() -> None:
    paths = tuple(GpuPath(f"0000:0{i}:00.0", "0000:00", "0000:00:01.0", "0000:01:00.0") for i in (2, 3))
    answer = verdict("acs_detour", GPU_PATHS.known(paths, lines=(1,)))
    assert (answer.kind, answer.missing) == (VerdictKind.OPEN, ("host.acs",))
    partly = verdict("acs_detour", GPU_PATHS.known(paths, lines=(1,)), ACS.known((), lines=(1,), missing=("ports",)))
    assert partly.missing == ("host.acs",)


def test_a_region_takes_the_next_power_of_two_and_an_exact_one_no_more() -> None:
    gpus = GPUS.known(tuple(replace(gpu, vram_mib=131072) for gpu in EIGHT), lines=(1,))
    memory = MEMORY_MIB.known(1024, lines=(1,))
    answer = verdict("bar_space_shortage", PHYS_BITS.known(39, lines=(1,)), memory, gpus)
    (claim,) = [claim for claim in answer.for_ if claim.range]
    assert claim.range is not None
    assert list(claim.range) == pytest.approx([1.0 + 1 / 1024] * 2)


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (GpuTelemetry("0", 50, pcie_gen=5, pcie_width=None), VerdictKind.REFUTED),
        (GpuTelemetry("0", 50, pcie_gen=5, pcie_width=4), VerdictKind.SUPPORTED),
        (GpuTelemetry("0", 50, pcie_gen=3, pcie_width=16), VerdictKind.SUPPORTED),
    ],
)
def test_a_link_at_work_counts_and_its_width_is_the_drivers_where_no_sample_has_one(
    seen: GpuTelemetry, kind: VerdictKind
) -> None:
    gpu = replace(EIGHT[0], pcie_gen=1, pcie_width=16, pcie_gen_max=5, pcie_width_max=16, utilisation_percent=0)
    listed, watched = GPUS.known((gpu,), lines=(1,)), TELEMETRY.known((seen,), lines=(1,))
    items = [Sourced(listed, "gpus@a", 0, 0), Sourced(watched, "telemetry@b", 0, 1)]
    verdicts = diagnose(Facts.of(items)).verdicts
    assert verdicts["pcie_link_degraded"].kind is kind


def test_matrices_that_were_read_before_the_list_do_not_lengthen_it() -> None:
    count, bus = GPU_COUNT_SMI.known(6, lines=(1,)), GPU_COUNT_PCI.known(8, lines=(1,))
    wide, narrow = TOPOLOGY.known(topology(8, "PHB"), lines=(1,)), TOPOLOGY.known(topology(6, "PHB"), lines=(1,))

    def whole(*readings: Reading[Any]) -> bool:
        listing = Situation(facts_of(*readings)).listing
        assert listing is not None
        return listing.whole

    assert whole(wide, count, bus)
    assert whole(count, bus, narrow)
    assert not whole(count, bus, wide)


@pytest.mark.parametrize(
    ("words", "hidden"),
    [
        (("-cpu", "host"), False),
        (("-cpu", "host,kvm=off"), True),
        (("-cpu", "host,-hypervisor"), True),
        (("-name", "vm,kvm=off"), False),
    ],
)
def test_only_the_processors_words_hide_kvm(words: tuple[str, ...], hidden: bool) -> None:
    assert hides_kvm(words) is hidden


@pytest.mark.parametrize(
    "line", ["0000:41:00,romfile=card.rom", "mapping=pro6000,driver=vfio-pci", "0000:41:00,mdev=nv-1"]
)
def test_a_hostpci_line_takes_what_proxmox_takes(line: str) -> None:
    assert hostpci(line)[0] in {"host", "mapping"}


@pytest.mark.parametrize("line", ["0000:41:00,foo=bar", "0000:41:00,romfile=$(x)", "pcie=1", "0000:41:00,mapping=a"])
def test_a_hostpci_line_refuses_what_proxmox_refuses(line: str) -> None:
    with pytest.raises(ScriptError):
        hostpci(line)


def test_a_benchmark_without_rules_is_not_among_what_verifies() -> None:
    names = names_of("bench.copy and host.vms and bench.launch", ("guest.p2p_read",))
    assert "host.vms" in names
    assert "guest.p2p_read" in names
    assert "bench.copy" in names
    assert "bench.serving" in names
    assert "bench.launch" not in names


@pytest.mark.parametrize(
    ("total", "output", "ours", "clash"),
    [(485.0, 230.0, 485.0, True), (485.0, 230.0, 230.0, False), (230.0, 230.0, 230.0, False)],
)
def test_a_rate_that_is_the_benchmarks_total_is_no_output(
    total: float, output: float, ours: float, clash: bool
) -> None:
    served = SERVING.known((ServingRow(64, output, total),), lines=(1,))
    observed = OBSERVED.known((Observed(64, (ours, ours)),), lines=(1,))
    assert ("total_as_output" in _clashes(served, observed)) is clash


@pytest.mark.parametrize(
    ("name", "size_gb", "clash"), [("Large-NVFP4", 30, True), ("Large-NVFP4", 40, False), ("Large", 30, False)]
)
def test_weights_need_the_bits_that_the_models_name_says(name: str, size_gb: int, clash: bool) -> None:
    model = MODEL.known(Model(name, total_params=70e9), lines=(1,))
    notes = NOTES.known(f"the weights take {size_gb} GB on disk", lines=(1,))
    assert ("weights_size" in _clashes(model, notes)) is clash


@pytest.mark.parametrize(
    ("kind", "iommu", "told"),
    [
        ("kvm", None, True),
        ("kvm", Iommu(enabled=False), True),
        ("kvm", Iommu(enabled=True, emulated=True), False),
        ("none", None, False),
        ("none", Iommu(enabled=False), False),
    ],
)
def test_no_iommu_is_normal_in_a_guest_that_shows_none(kind: str, iommu: Iommu | None, told: bool) -> None:
    shown = [GUEST_IOMMU.known(iommu, lines=(1,))] if iommu else []
    findings = {f.id for f in diagnose(facts_of(VIRT_KIND.known(kind, lines=(1,)), *shown)).findings}
    assert ("no_iommu_in_guest" in findings) is told


@pytest.mark.parametrize(("size", "told"), [(1 << 20, True), ((1 << 20) - 1, False)])
def test_a_plateau_begins_at_a_mebibyte(size: int, told: bool) -> None:
    row = CopyRow(CopyPath.PEER, "0", "1", size, size / 40e3, Timing.DEVICE)
    guest = [*kvm_guest(), COPY.known(CopyResult((row,)), lines=(1,))]
    findings = {f.id: f for f in diagnose(facts_of(*guest)).findings}
    assert ("staged_plateau" in findings) is told
    if told:
        assert findings["staged_plateau"].claims[0].range == pytest.approx((40.0, 40.0))


def test_gpus_of_two_models_do_not_exclude_another_reason() -> None:
    mixed = tuple(replace(gpu, name=f"Card {gpu.index % 2}") for gpu in EIGHT)
    guest = [reading for reading in kvm_guest(P2pCode.NS) if reading.fact_id != GPUS.id]
    alike = verdict("p2p_denied_other", *guest, GPUS.known(EIGHT, lines=(3,)))
    assert (alike.kind, len(alike.against)) == (VerdictKind.OPEN, 1)
    assert verdict("p2p_denied_other", *guest, GPUS.known(mixed, lines=(3,))).against == ()


def test_a_card_of_a_known_kind_has_a_bandwidth_for_the_floor() -> None:
    card, model = Gpu(0, "NVIDIA H200"), Model(active_weight_bytes=(4.32e9, 4.32e9))
    floor = step_floor(facts_of(GPUS.known((card,), lines=(1,)), MODEL.known(model, lines=(1,))), 1)
    assert floor.missing == ()
    assert floor.floor_ms == pytest.approx((1.0, 1.0))
    unknown = step_floor(facts_of(GPUS.known((Gpu(0, "Card"),), lines=(1,)), MODEL.known(model, lines=(1,))), 1)
    assert len(unknown.missing) == 1


@pytest.mark.parametrize(
    ("model", "tokens", "asks"),
    [
        (Model(total_params=70e9, active_params=70e9, active_weight_bytes=(1.0, 1.0)), 8, 0),
        (Model(total_params=744e9, active_params=40e9, active_weight_bytes=(1.0, 1.0)), 1, 0),
        (Model(total_params=744e9, active_params=40e9, active_weight_bytes=(1.0, 1.0)), 8, 2),
    ],
)
def test_a_batch_of_a_sparse_model_asks_for_its_experts(model: Model, tokens: int, asks: int) -> None:
    known = facts_of(GPUS.known((Gpu(0, "NVIDIA H200"),), lines=(1,)), MODEL.known(model, lines=(1,)))
    assert len(step_floor(known, tokens).missing) == asks


def test_each_layer_has_two_all_reduces() -> None:
    row = CopyRow(CopyPath.PEER, "0", "1", 16384, 20.0, Timing.DEVICE)
    copies, parallel = COPY.known(CopyResult((row,)), lines=(1,)), PARALLELISM.known(Parallelism(tp=8), lines=(1,))

    def comm_ms(layers: int) -> tuple[float, float]:
        model = MODEL.known(Model(layers=layers, hidden_size=4096, activation_bytes=2), lines=(1,))
        cost = communication(Situation(facts_of(copies, parallel, model)), 1).comm_ms
        assert cost is not None
        return cost

    assert comm_ms(80) == pytest.approx([4 * end for end in comm_ms(20)])
    assert comm_ms(1)[1] > 2 * 14 * 20.0 / 1e3  # two, each of at least fourteen copies in a row


def test_p3_alone_looks_after_the_network() -> None:
    assert {phase: "network" in host_parts(phase, Do.APPLY) for phase in ("P2", "P3")} == {"P2": False, "P3": True}


def test_a_flag_that_switches_graphs_off_is_a_setting_by_itself() -> None:
    engine = ENGINE.known(Engine("vllm", flags={"--enforce-eager": "", "--max-num-seqs": "8"}), lines=(1,))
    bare = [reading for reading in kvm_guest(P2pCode.OK) if reading.fact_id != VIRT_KIND.id]
    script = phase_script(facts_of(*bare, engine), "P1", Do.APPLY, role="guest")
    assert "without --enforce-eager" in script.changes
    assert not any("max-num-seqs" in change for change in script.changes)


@pytest.mark.parametrize(("spread", "runs"), [(0.0145, 3), (0.017, 4), (0.022, 5)])
def test_both_states_runs_but_two_are_free_to_vary(spread: float, runs: int) -> None:
    """By the tables of t at 0.04 and 0.4: 3 runs show 5 % up to a spread of 0.0152, 4 to 0.0196, 5 to 0.0231."""
    times = {("peer", 12288): (1.0, math.exp(spread * math.sqrt(2)))}
    assert runs_needed((times, times)) == runs


def test_a_single_rank_makes_no_all_reduce() -> None:
    model = MODEL.known(Model(layers=20, hidden_size=4096, activation_bytes=2), lines=(1,))
    cost = communication(Situation(facts_of(PARALLELISM.known(Parallelism(tp=1), lines=(1,)), model)), 1)
    assert (cost.comm_ms, cost.missing) == ((0.0, 0.0), ())


@pytest.mark.parametrize(("experts", "active", "asks"), [(256, 8, 0), (256, None, 1), (None, 8, 1), (None, None, 1)])
def test_either_count_of_experts_is_asked_for(experts: int | None, active: int | None, asks: int) -> None:
    sparse = Model(total_params=744e9, active_params=40e9, active_weight_bytes=(1.0, 1.0), weight_bytes=(9.0, 9.0))
    model = MODEL.known(replace(sparse, experts=experts, experts_active=active), lines=(1,))
    floor = step_floor(facts_of(GPUS.known((Gpu(0, "NVIDIA H200"),), lines=(1,)), model), 8)
    assert len(floor.missing) == asks


@pytest.mark.parametrize(
    ("profile", "named", "percent"),
    [
        (Profile(60.0, 10.0, 5.0, 5.0, 20.0), "Collectives", "60 %"),
        (Profile(10.0, 60.0, 5.0, 5.0, 20.0), "Attention", "60 %"),
        (Profile(10.0, 20.0, 5.0, 5.0, 160.0), "Gaps", "80 %"),
    ],
)
def test_the_largest_part_of_a_profile_is_named_with_its_share(profile: Profile, named: str, percent: str) -> None:
    text = headline(Case(Situation(facts_of(PROFILE.known(profile, lines=(1,)))), ()))
    assert text.startswith(named)
    assert percent in text


@pytest.mark.parametrize(("rate", "unbounded"), [(10.0, True), (1.0, False)])
def test_without_a_floor_communication_that_fills_the_step_bounds_no_gain(rate: float, unbounded: bool) -> None:
    row = CopyRow(CopyPath.PEER, "0", "1", 16384, 100.0, Timing.DEVICE)
    model = Model(layers=80, hidden_size=4096, activation_bytes=2)
    readings = (
        COPY.known(CopyResult((row,)), lines=(1,)),
        PARALLELISM.known(Parallelism(tp=8), lines=(1,)),
        MODEL.known(model, lines=(1,)),
        OBSERVED.known((Observed(1, (rate, rate)),), lines=(1,)),
    )
    (bound,) = bounds(Situation(facts_of(*readings)))
    assert bound.floor_ms is None
    gain = bound.max_gain_remove_comm
    assert gain is None if unbounded else gain is not None and gain[1] > 1.0


@pytest.mark.parametrize(("runs", "change"), [(1, None), (2, 0.1133), (3, 0.0626)])
def test_what_runs_can_show_follows_the_tables_of_t(runs: int, change: float | None) -> None:
    """Two runs each: (4.303 + 1.061) · 0.02; three: (2.776 + 0.941) · 0.02 · √(2/3)."""
    assert minimum_detectable(0.02, runs) == (change and pytest.approx(change, rel=5e-3))


@pytest.mark.parametrize(
    ("requests", "errors", "fails"), [(100, 0, False), (100, 1, False), (100, 50, True), (None, 3, True), (0, 0, False)]
)
def test_a_rung_fails_where_many_of_its_requests_did(requests: int | None, errors: int, fails: bool) -> None:
    assert failing(ServingRow(4, 90.0, requests=requests, errors=errors)) is fails


def test_where_no_topology_was_read_a_p2p_connection_may_be_nvlinks() -> None:
    used = NCCL_TRANSPORTS.known(NcclTransports(p2p=8), lines=(1,))
    wide = TOPOLOGY.known(topology(8, "PHB"), lines=(1,))
    unread, known = (diagnose(facts_of(used, *more)).ladder for more in ((), (wide,)))
    assert any("the topology was not read" in gate.why for gate in unread if gate.gate == "used")
    assert not any("the topology was not read" in gate.why for gate in known if gate.gate == "used")


@pytest.mark.parametrize(
    "model",
    [
        Model(hidden_size=4096, activation_bytes=2),
        Model(layers=20, activation_bytes=2),
        Model(layers=20, hidden_size=4096),
    ],
)
def test_a_layout_without_the_models_shape_has_no_cost(model: Model) -> None:
    row = CopyRow(CopyPath.PEER, "0", "1", 16384, 20.0, Timing.DEVICE)
    situation = Situation(facts_of(COPY.known(CopyResult((row,)), lines=(1,)), MODEL.known(model, lines=(1,))))
    assert comm_per_token_ms(situation, 4) is None
    assert comm_per_token_ms(situation, 1) == (0.0, 0.0)


@pytest.mark.parametrize(("value", "count"), [(0, 0), (3, 3)])
def test_draft_tokens_may_be_none_and_are_no_switch(value: int, count: int) -> None:
    (reading,) = [r for r in read_workload({"model": {"draft_tokens": value}}) if r.fact_id == MODEL.id]
    assert reading.value is not None
    assert reading.value.draft_tokens == count
    with pytest.raises(ValueError, match="draft_tokens"):
        list(read_workload({"model": {"draft_tokens": False}}))


def test_the_verified_cliques_are_those_of_the_gpus() -> None:
    config = "### /etc/pve/qemu-server/128.conf\n" + KPRO6 + "hostpci8: 0000:05:00.0\n"
    card = IommuGroup(5, ("0000:05:00.0",), ("05:00.0 Ethernet controller: Mellanox",))
    vms, groups = VMS.known(qm_config.parse(config), lines=(1,)), IOMMU_GROUPS.known((card,), lines=(1,))
    script = phase_script(facts_of(*kvm_guest(), vms, groups), "P2", Do.VERIFY)
    assert "cliques='" + " ".join(f"hostpci{i}=0" for i in range(8)) + "'" in script.text


def test_a_subset_is_blocked_by_the_size_that_the_parameters_need() -> None:
    model = Model("Large-NVFP4", total_params=800e9, weight_bytes=(450e9, 460e9))
    gpus = GPUS.known(tuple(replace(gpu, vram_mib=97887) for gpu in EIGHT), lines=(1,))
    known = facts_of(gpus, MODEL.known(model, lines=(1,)), PARALLELISM.known(Parallelism(tp=8), lines=(1,)))
    advice = diagnose(known).advice["tp_subset"]
    assert advice.status is OptionStatus.BLOCKED
    assert "800 billion parameters at 4.5 bits" in advice.why[1].text
    assert "450 GB" in advice.why[1].text


def test_kernels_that_spin_are_told_with_their_share_of_the_power() -> None:
    gpus = tuple(replace(gpu, utilisation_percent=100, power_w=90.0, power_limit_w=600.0) for gpu in EIGHT)
    answer = verdict("hang", GPUS.known(gpus, lines=(1,)))
    assert [claim.text for claim in answer.for_] == [
        "utilisation is 100 % at 15 % of the power limit in one snapshot: kernels that wait"
    ]
