"""Each option's status where it matters: what was seen decides, and nothing seen is no verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import DELIVERY, PROFILE, DeliveryResult, Profile
from agents.facts.gpu import FABRIC, GPUS, Fabric, Gpu
from agents.facts.host import (
    CPU_GOVERNOR,
    GPU_PATHS,
    HOST_CMDLINE,
    PCI_MAPPINGS,
    PLATFORM,
    VFIO_ERRORS,
    CpuGovernor,
    GpuPath,
    PciMapping,
    Platform,
    VfioError,
)
from agents.facts.nccl import ENGINE, NCCL_ENV, Engine
from agents.facts.p2p import TOPOLOGY, P2pCode
from agents.facts.platform import KERNEL_CMDLINE, KVM_VISIBLE, MACHINE_TYPE, VIRT_KIND, MachineType
from agents.facts.vm import VM_CLIQUE, VM_CPU, VM_CPU_HIDDEN, VM_HOSTPCI, VM_MACHINE, VM_NUMA, HostPci
from agents.facts.workload import MODEL, PARALLELISM, Model, Parallelism
from tests.webapp.diagnosis.building import facts_of, kvm_guest, topology
from tests.webapp.diagnosis.sample_facts import case_at, diagnosed
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart, Verdict, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.ladder import judge_ladder
from webapp.diagnosis.option import PHASES
from webapp.diagnosis.prediction.bound import bounds
from webapp.diagnosis.situation import Situation

S = OptionStatus
OPTIONS = {option.id: option for option in all_options()}


def case_of(*readings: Reading[Any], supported: tuple[str, ...] = ()) -> Case:
    facts = Facts.of(Sourced(reading, "test") for reading in readings)
    case = Case(Situation(facts), judge_ladder(Situation(facts)), bounds(Situation(facts)))
    verdicts = {h.id: h.assess(case) for h in all_hypotheses()}
    verdicts |= {name: Verdict(VerdictKind.SUPPORTED) for name in supported}
    return replace(case, verdicts=verdicts)


def judged(option: str, *readings: Reading[Any], supported: tuple[str, ...] = ()) -> Advice:
    return OPTIONS[option].judge(case_of(*readings, supported=supported))


BARE = VIRT_KIND.known("none")
KVM = VIRT_KIND.known("kvm")
PRO = GPUS.known(tuple(Gpu(i, "NVIDIA RTX PRO 6000 Blackwell Server Edition", mig=False) for i in range(8)))
FORCE = GPUS.known(tuple(Gpu(i, "NVIDIA GeForce RTX 3090", mig=False) for i in range(2)))


def test_every_option_has_its_phase() -> None:
    assert {option.phase for option in OPTIONS.values()} <= set(PHASES)


@pytest.mark.parametrize("option", OPTIONS)
def test_nothing_known_gives_no_strong_word(option: str) -> None:
    advice = judged(option)
    assert advice.status is not S.DONE
    assert advice.why
    if option != "engine_profile":
        assert advice.status is not S.RECOMMENDED
    assert advice.predicted_effect is None or advice.predicted_effect[0] >= 1


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("stage", ["first", "guest", "host", "after"])
def test_effects_stay_within_the_bound(option: str, stage: str) -> None:
    case = case_at(stage)
    effect = OPTIONS[option].judge(case).predicted_effect
    limit = case.single_stream.max_gain_remove_comm if case.single_stream else None
    if effect is not None and limit is not None:
        assert 1 <= effect[0] <= effect[1] <= limit[1] * (1 + 1e-9)


@pytest.mark.parametrize("option", ["acs_override", "allow_unsafe_interrupts"])
def test_what_is_unsafe_is_unsafe_everywhere(option: str) -> None:
    assert judged(option).status is S.UNSAFE
    assert judged(option, BARE).status is S.UNSAFE
    on = HOST_CMDLINE.known("pcie_acs_override=downstream allow_unsafe_interrupts=1")
    assert "remove it" in judged(option, on).why[1].text


@pytest.mark.parametrize(
    "option", ["cpu_host", "unhide_kvm", "q35_pcie", "pcie_without_q35", "hugepages", "lxc", "vnuma"]
)
def test_what_a_vm_needs_has_no_effect_without_one(option: str) -> None:
    assert judged(option, BARE).status is S.NO_EFFECT


def test_hosts_options_are_the_admins_and_engine_options_the_operators() -> None:
    for option in OPTIONS.values():
        assert (option.phase == "P1") <= (option.actor is Actor.OPERATOR)
        assert (option.downtime is Restart.HOST) <= (option.actor is Actor.HOST_ADMIN)


@pytest.mark.parametrize(("board", "status"), [(MachineType.I440FX, S.BLOCKED), (MachineType.Q35, S.NO_EFFECT)])
def test_pcie_alone_is_blocked_by_the_board(board: MachineType, status: OptionStatus) -> None:
    assert judged("pcie_without_q35", KVM, MACHINE_TYPE.known(board)).status is status
    assert judged("pcie_without_q35", KVM, VM_MACHINE.known(board)).status is status


def test_q35_with_pcie_is_done_only_when_every_device_has_it() -> None:
    q35 = VM_MACHINE.known(MachineType.Q35)
    half = VM_HOSTPCI.known((HostPci(0, pcie=True), HostPci(1)))
    full = VM_HOSTPCI.known((HostPci(0, pcie=True), HostPci(1, pcie=True)))
    assert judged("q35_pcie", KVM, q35, half).status is S.POSSIBLE
    assert judged("q35_pcie", KVM, q35, full).status is S.DONE


DENIED = ("p2p_denied_no_clique",)


def test_the_clique_is_recommended_when_its_lack_is_the_cause() -> None:
    assert judged("gpudirect_clique", KVM, PRO, supported=DENIED).status is S.RECOMMENDED
    assert judged("gpudirect_clique", KVM, PRO).status is S.POSSIBLE
    assert judged("gpudirect_clique", BARE, PRO, supported=DENIED).status is S.NO_EFFECT


@pytest.mark.parametrize(
    "danger",
    [
        VFIO_ERRORS.known((VfioError("0000:01:00.0", -14, "Bad address"),)),
        DELIVERY.known(DeliveryResult({"0->1": False})),
        FORCE,
    ],
)
def test_the_clique_is_unsafe_where_its_promise_is_false(danger: Reading[Any]) -> None:
    gpus = () if danger is FORCE else (PRO,)
    advice = judged("gpudirect_clique", KVM, danger, *gpus, supported=DENIED)
    assert advice.status is S.UNSAFE
    assert advice.predicted_effect is None


def test_a_false_grant_is_taken_back() -> None:
    bad = ("false_p2p_grant",)
    assert judged("remove_clique", KVM, supported=bad).status is S.RECOMMENDED
    assert judged("nccl_p2p_disable", KVM, supported=bad).status is S.RECOMMENDED
    assert judged("remove_clique", KVM, VM_CLIQUE.known({"hostpci0": 0})).status is S.POSSIBLE


@pytest.mark.parametrize(("cpu", "status"), [("host", S.DONE), ("x86-64-v2-AES", S.RECOMMENDED)])
def test_the_cpu_type(cpu: str, status: OptionStatus) -> None:
    assert judged("cpu_host", KVM, VM_CPU.known(cpu)).status is status


def test_graphs_are_recommended_when_a_flag_turns_them_off() -> None:
    off = ENGINE.known(Engine("vllm", flags={"--enforce-eager": "true"}))
    assert judged("cuda_graphs_on", off).status is S.RECOMMENDED
    assert judged("cuda_graphs_on", ENGINE.known(Engine("vllm"))).status is S.POSSIBLE


def test_a_profile_says_which_backend_is_worth_a_try() -> None:
    profile = PROFILE.known(Profile(2, 10, 60, 8, 20))
    moe = judged("moe_backend", profile)
    assert moe.status is S.RECOMMENDED
    assert moe.predicted_effect == pytest.approx((1, 2.5))
    assert judged("attention_backend", profile).status is S.POSSIBLE
    assert judged("engine_profile", profile).status is S.DONE


def test_settings_that_are_there_are_done() -> None:
    assert judged("nccl_p2p_level", NCCL_ENV.known({"NCCL_P2P_LEVEL": "SYS"})).status is S.DONE
    assert judged("pci_realloc", KERNEL_CMDLINE.known("ro pci=realloc")).status is S.DONE
    drafts = MODEL.known(Model(draft_tokens=3))
    assert judged("speculative_decoding", drafts).status is S.DONE


def test_acs_matters_only_on_a_switch() -> None:
    direct = GPU_PATHS.known((GpuPath("0000:01:00.0", "0000:00"), GpuPath("0000:21:00.0", "0000:20")))
    assert judged("clear_acs_on_switch", direct).status is S.NO_EFFECT
    assert judged("clear_acs_on_switch", supported=("acs_detour",)).status is S.RECOMMENDED


GOVERNORS = {
    "all performance": (CpuGovernor({"performance": 64}, "acpi-cpufreq"), (), S.DONE),
    "one of them seen": (CpuGovernor({"performance": 1}), ("the other CPUs",), S.POSSIBLE),
    "some performance": (CpuGovernor({"performance": 48, "schedutil": 16}), (), S.POSSIBLE),
    "follows the load": (CpuGovernor({"powersave": 64}, "intel_pstate"), (), S.POSSIBLE),
    "lowest clock": (CpuGovernor({"powersave": 64}, "acpi-cpufreq"), (), S.POSSIBLE),
}


@pytest.mark.parametrize(("found", "missing", "status"), list(GOVERNORS.values()), ids=list(GOVERNORS))
def test_the_governor_is_done_where_every_cpu_was_seen_to_have_it(
    found: CpuGovernor, missing: tuple[str, ...], status: OptionStatus
) -> None:
    advice = judged("host_governor", CPU_GOVERNOR.known(found, lines=(2,), missing=missing))
    assert advice.status is status
    assert advice.predicted_effect is None
    assert advice.why[0].evidence
    assert advice.why[0].basis is Basis.MEASURED
    follows = found.driver == "intel_pstate"
    assert any("the gain may be nothing" in claim.text for claim in advice.why) is follows


def test_a_governor_is_said_with_its_counts_and_what_was_not_read() -> None:
    mixed = CPU_GOVERNOR.known(CpuGovernor({"performance": 48, "schedutil": 16}, "acpi-cpufreq"))
    assert judged("host_governor", mixed).why[0].text == (
        "the host’s governor is performance on 48, schedutil on 16 of 64 CPUs; the driver is acpi-cpufreq"
    )
    one = CPU_GOVERNOR.known(CpuGovernor({"performance": 1}), missing=("the other CPUs",))
    assert judged("host_governor", one).why[0].text == (
        "the host’s governor is performance on 1 CPU; not read: the other CPUs"
    )


def test_no_governor_to_set_is_not_the_same_as_one_that_was_not_read() -> None:
    none = judged("host_governor", CPU_GOVERNOR.absent("no cpufreq folder"))
    assert none.status is S.BLOCKED
    assert "no governor to set" in none.why[0].text
    assert none.why[0].evidence
    for unread in ((), (CPU_GOVERNOR.not_run("refused"),), (CPU_GOVERNOR.unreadable("cut"),)):
        advice = judged("host_governor", *unread)
        assert advice.status is S.POSSIBLE
        assert "was not read" in advice.why[0].text
        assert advice.why[0].basis is Basis.LITERATURE


@pytest.mark.parametrize(
    ("weights", "status"), [((410e9, 440e9), S.BLOCKED), ((200e9, 220e9), S.POSSIBLE), ((300e9, 400e9), S.POSSIBLE)]
)
def test_a_subset_is_blocked_only_when_the_least_does_not_fit(
    weights: tuple[float, float], status: OptionStatus
) -> None:
    said = (MODEL.known(Model(weight_bytes=weights)), PARALLELISM.known(Parallelism(tp=8)), PRO)
    assert judged("tp_subset", *said).status is status


def test_mig_is_off_on_or_not_known() -> None:
    assert judged("disable_mig", PRO).status is S.DONE
    assert judged("disable_mig", GPUS.known((Gpu(0, mig=True),))).status is S.RECOMMENDED
    assert judged("disable_mig", GPUS.known((Gpu(0),))).status is S.POSSIBLE


def test_a_rented_hypervisor_takes_no_settings() -> None:
    given = [*kvm_guest(P2pCode.NS)[1:], VIRT_KIND.known("amazon", lines=(1,))]
    facts = facts_of(*given)
    advice = OPTIONS["gpudirect_clique"].judge(Case(Situation(facts), judge_ladder(Situation(facts))))
    assert advice.status is S.BLOCKED
    assert "Amazon" in advice.why[0].text


@pytest.mark.parametrize(("level", "status"), [("PHB", S.DONE), ("SYS", S.DONE), ("PXB", S.POSSIBLE)])
def test_a_level_that_reaches_too_near_is_not_done(level: str, status: OptionStatus) -> None:
    facts = facts_of(NCCL_ENV.known({"NCCL_P2P_LEVEL": level}, lines=(1,)))
    assert OPTIONS["nccl_p2p_level"].judge(Case(Situation(facts), judge_ladder(Situation(facts)))).status is status


@pytest.mark.parametrize("stage", ["first", "guest", "host", "after"])
def test_no_effect_is_a_factor_of_one(stage: str) -> None:
    advice = diagnosed(stage).advice
    without = {name: a for name, a in advice.items() if a.status is S.NO_EFFECT}
    assert len(without) > 4
    assert {a.predicted_effect for a in without.values()} == {(1.0, 1.0)}


def test_what_nobody_showed_about_the_clique_is_said() -> None:
    texts = " ".join(claim.text for claim in diagnosed("host").advice["gpudirect_clique"].why)
    assert "on Proxmox no public report was found" in texts
    assert "no public report of it on i440FX" in texts
    after = " ".join(claim.text for claim in diagnosed("after").advice["gpudirect_clique"].why)
    assert "i440FX" not in after


def parallel(tp: int = 1, ep: int = 1, dp: int = 1) -> Reading[Any]:
    return PARALLELISM.known(Parallelism(tp=tp, ep=ep, dp=dp))


BRANCHES: list[tuple[str, tuple[Reading[Any], ...], OptionStatus, str]] = [
    ("tp4_pp2", (), S.POSSIBLE, "was not given"),
    ("tp4_pp2", (parallel(tp=2),), S.BLOCKED, "can be halved"),
    ("tp4_pp2", (parallel(tp=5),), S.BLOCKED, "can be halved"),
    ("tp4_pp2", (parallel(tp=4),), S.POSSIBLE, "2 ring steps take the place of 6"),
    ("tp_subset", (), S.POSSIBLE, "was not given"),
    ("tp_subset", (parallel(tp=1),), S.BLOCKED, "can be halved"),
    ("tp_subset", (parallel(tp=3),), S.BLOCKED, "can be halved"),
    ("nccl_sweep", (), S.POSSIBLE, "channels"),
    ("nccl_sweep", (parallel(tp=1),), S.NO_EFFECT, "makes no all-reduce"),
    ("nccl_sweep", (parallel(tp=2),), S.RECOMMENDED, "channels"),
    ("nccl_sweep", (GPUS.known((Gpu(0),)),), S.NO_EFFECT, "one GPU"),
    ("expert_parallel", (parallel(ep=8),), S.DONE, "expert parallel 8"),
    ("expert_parallel", (parallel(ep=1),), S.POSSIBLE, "all-to-all"),
    ("expert_parallel", (MODEL.known(Model(total_params=8e9, active_params=8e9)),), S.BLOCKED, "dense"),
    ("expert_parallel", (MODEL.known(Model(total_params=8e9, active_params=1e9)),), S.POSSIBLE, "all-to-all"),
    ("expert_parallel", (MODEL.known(Model()),), S.POSSIBLE, "all-to-all"),
    ("dp_attention", (PARALLELISM.known(Parallelism(dp_attention=True)),), S.DONE, "in use"),
    ("dp_attention", (parallel(dp=8),), S.POSSIBLE, "high concurrency"),
    ("speculative_decoding", (MODEL.known(Model(draft_tokens=0)),), S.POSSIBLE, "drafts"),
    ("vnuma", (KVM, VM_NUMA.known(True)), S.DONE, "numa: 1"),
    ("vnuma", (KVM, VM_NUMA.known(False)), S.POSSIBLE, "ask for lscpu"),
    ("vnuma", (KVM, PLATFORM.known(Platform(sockets=1))), S.NO_EFFECT, "one socket"),
    ("vnuma", (KVM, PLATFORM.known(Platform(sockets=2))), S.POSSIBLE, "ask for lscpu"),
    ("fabric_manager", (FABRIC.known(Fabric("Completed")),), S.DONE, "Completed"),
    ("fabric_manager", (TOPOLOGY.known(topology(2, "PHB")),), S.NO_EFFECT, "no fabric"),
    ("fabric_manager", (TOPOLOGY.known(topology(2, "NV4")),), S.POSSIBLE, "NVSwitch"),
    ("fabric_manager", (), S.POSSIBLE, "NVSwitch"),
    ("pci_realloc", (KERNEL_CMDLINE.known("ro quiet"),), S.NO_EFFECT, "no address space"),
    ("bare_metal", (BARE,), S.DONE, "no VM"),
    ("bare_metal", (KVM,), S.POSSIBLE, "no clique is needed"),
    ("unhide_kvm", (), S.POSSIBLE, "was not read"),
    ("unhide_kvm", (KVM, KVM_VISIBLE.known(True)), S.DONE, "sees KVM"),
    ("unhide_kvm", (KVM, VM_CPU_HIDDEN.known(True)), S.RECOMMENDED, "hidden"),
    ("unhide_kvm", (KVM, VM_HOSTPCI.known((HostPci(0), HostPci(1, x_vga=True)))), S.RECOMMENDED, "hidden"),
    ("unhide_kvm", (KVM, VM_HOSTPCI.known((HostPci(0),))), S.DONE, "sees KVM"),
    ("cpu_host", (KVM,), S.POSSIBLE, "was not read"),
    ("cpu_host", (KVM, VM_CPU.absent("no cpu line")), S.POSSIBLE, "names no CPU type"),
    ("cpu_host", (KVM, VM_CPU.known("max")), S.DONE, "max"),
    (
        "bios_acs_off",
        (PCI_MAPPINGS.known((PciMapping("gpu", "hgx", "0000:01:00", iommu_group=5),)),),
        S.NO_EFFECT,
        "gpu",
    ),
    ("cuda_graphs_on", (), S.POSSIBLE, "was not read"),
    ("cuda_graphs_on", (ENGINE.known(Engine("sglang", flags={"--disable_cuda_graph": ""})),), S.RECOMMENDED, "off"),
    ("nccl_p2p_level", (*kvm_guest(P2pCode.NS),), S.POSSIBLE, "while the driver refuses"),
    ("nccl_p2p_disable", (*kvm_guest(P2pCode.NS),), S.NO_EFFECT, "refuses P2P already"),
    ("nccl_p2p_disable", (*kvm_guest(P2pCode.OK),), S.POSSIBLE, "control arm"),
    ("clear_acs_on_switch", (*kvm_guest(P2pCode.NS),), S.NO_EFFECT, "no traffic between peers"),
    ("clear_acs_on_switch", (*kvm_guest(P2pCode.OK),), S.POSSIBLE, "share a switch"),
    ("remove_clique", (*kvm_guest(P2pCode.NS),), S.NO_EFFECT, "nobody looked"),
    ("remove_clique", (*kvm_guest(P2pCode.NS), VM_CLIQUE.known({"hostpci0": 0})), S.POSSIBLE, "a clique is set"),
]


@pytest.mark.parametrize(("option", "readings", "status", "says"), BRANCHES)
def test_each_branch_of_an_option_has_its_status(
    option: str, readings: tuple[Reading[Any], ...], status: OptionStatus, says: str
) -> None:
    advice = judged(option, *readings)
    assert advice.status is status
    assert says in advice.why[-1].text or says in advice.why[0].text


WEIGHT = (Restart.NONE, Restart.ENGINE, Restart.GUEST, Restart.VM, Restart.HOST)
READ_AT_START = (
    (("host.kernel_cmdline", "host.iommu_groups"), Restart.HOST),
    (("vm.",), Restart.VM),
    (("guest.kernel_cmdline",), Restart.GUEST),
    (("guest.engine", "guest.nccl_env"), Restart.ENGINE),
)


@pytest.mark.parametrize("option", OPTIONS)
def test_what_is_read_at_a_start_changes_with_that_start(option: str) -> None:
    """A kernel's line and its IOMMU groups, a VM's configuration, an engine's environment."""
    changes, downtime = OPTIONS[option].changes, OPTIONS[option].downtime
    for beginnings, least in READ_AT_START:
        if any(change.startswith(beginnings) for change in changes):
            assert WEIGHT.index(downtime) >= WEIGHT.index(least)
