"""The hypervisor's promise to the guest's driver that these GPUs may reach each other.

QEMU's option x-nv-gpudirect-clique, on Proxmox through `args`. It asserts and enables nothing: a false
promise hangs or corrupts data, so gates 4 to 7 follow, and a way back.

Source: QEMU hw/vfio/pci-quirks.c; NVIDIA open kernel modules 595.45, p2p_caps.c.
"""

from agents.facts.bench import ALLREDUCE, DELIVERY, PROFILE
from agents.facts.gpu import GPUS, Gpu
from agents.facts.host import VFIO_BACKEND, VFIO_ERRORS, VfioBackend
from agents.facts.p2p import P2P_READ, P2pCode
from agents.facts.platform import MachineType
from agents.facts.vm import VM_ARGS, VM_CLIQUE, VMS
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.gates.mapped import mapping_errors
from webapp.diagnosis.option import Option, advise, because, no_vm, p2p_effect, seen
from webapp.diagnosis.reference.gpus import gpu_spec
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.platform import HYPERVISORS
from webapp.diagnosis.wording import effects, unless, why_no_clique

SOURCE = "NVIDIA open kernel modules 595.45, p2p_caps.c; QEMU hw/vfio/pci-quirks.c"
REPORTS = "QEMU hw/vfio/pci-quirks.c; public reports up to 2026-11"


def judge(case: Case) -> Advice:
    facts = case.facts
    outside = no_vm(case)
    if outside:
        return outside
    cloud = case.situation.cloud
    if cloud:
        text = f"the hypervisor is {cloud}’s: ask for an instance whose GPUs may reach each other"
        return advise(OptionStatus.BLOCKED, because(text, SOURCE, case.situation.platform_refs))
    if case.situation.outside_kvm in HYPERVISORS:
        text = "the clique is for PCIe in KVM/QEMU guests"
        return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, case.situation.platform_refs))
    danger = [*_seen_here(case), *_known_of_product(facts)]
    if danger:
        return advise(OptionStatus.UNSAFE, *danger)
    granted = case.passed("granted")
    if granted:
        return advise(OptionStatus.DONE, seen(granted.why, granted.evidence, SOURCE))
    if facts.value(VM_CLIQUE) and facts.newer(VM_CLIQUE, P2P_READ):
        text = "it is configured since the driver was asked: ask again once the VM was started with it"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE, facts.refs(VM_CLIQUE)))
    if not case.supported("p2p_denied_no_clique"):
        text = "first it must be known that the driver refuses for lack of a clique"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE))
    text = (
        f"the driver refuses {why_no_clique(case.gates('granted'))} no clique is granted, and this is the setting it "
        "asks for. It promises that the board carries P2P and does not make it so: whether it does is shown "
        "afterwards, by gates 4 to 7, with the old configuration ready to be put back"
    )
    claim = because(text, SOURCE, facts.refs(P2P_READ, VM_ARGS), p2p_effect(case))
    first = _profile_first(case)
    more = [*first, *_gains(case), *_not_shown(case.situation)]
    after = "engine_profile" if first else ""
    return advise(OptionStatus.RECOMMENDED, claim, *more, effect=p2p_effect(case), after=after)


def _profile_first(case: Case) -> list[Claim]:
    """The order: a test without a restart comes before stopping the VM."""
    if case.facts.value(PROFILE) is not None:
        return []
    text = "after the engine’s profile, which needs no restart and tells how much P2P could matter at all"
    return [because(text, "order of the next tests")]


def _gains(case: Case) -> list[Claim]:
    """For each load, because a single stream's gain is not that of many requests."""
    gains, bound = effects(case.every_bound), case.single_stream
    if not gains or bound is None:
        return []
    return [Claim(f"predicted: {gains}{unless(bound)}", bound.evidence, p2p_effect(case), Basis.ESTIMATED)]


def _not_shown(situation: Situation) -> list[Claim]:
    """What nobody has shown in public for such a VM, so that it is not taken for known."""
    claims = []
    if situation.facts.value(VMS):
        text = "it is reported to work on other KVM hosts; with checked bytes on Proxmox no public report was found"
        claims.append(because(text, REPORTS, situation.facts.refs(VMS)))
    if situation.exception(lambda situation: situation.board is MachineType.I440FX):
        text = "nothing in QEMU ties it to q35, but no public report of it on i440FX was found"
        claims.append(because(text, REPORTS, situation.board_refs))
    return claims


def _seen_here(case: Case) -> list[Claim]:
    """What was seen on this machine that makes the promise false."""
    facts, claims = case.facts, []
    if facts.exception(mapping_errors):
        text = "VFIO could not map a GPU’s BAR for the others at the start of the VM"
        claims.append(because(text, "QEMU hw/vfio/listener.c", facts.refs(VFIO_ERRORS)))
    if facts.value(DELIVERY, where=lambda delivery: not all(delivery.pairs.values())):
        claims.append(seen("bytes did not arrive at their destination", facts.refs(DELIVERY), ""))
    if case.supported("false_p2p_grant"):
        refs = facts.refs(DELIVERY, ALLREDUCE, P2P_READ)
        claims.append(seen("P2P was granted before and did not work", refs, SOURCE))
    return claims


def _known_of_product(facts: Facts) -> list[Claim]:
    """What is known to make the promise false on such GPUs or such a backend."""
    claims = []
    if facts.value(VFIO_BACKEND, where=lambda backend: backend is VfioBackend.IOMMUFD):
        text = "iommufd maps no peer BARs without dma-buf support of kernel and QEMU"
        claims.append(because(text, "Linux iommufd, 6.19", facts.refs(VFIO_BACKEND)))
    if facts.value(GPUS, where=_any_geforce):
        text = "on GeForce GPUs a clique was accepted while data never arrived"
        claims.append(because(text, "public reports to NVIDIA/nccl, 2026", facts.refs(GPUS)))
    return claims


def _any_geforce(gpus: tuple[Gpu, ...]) -> bool:
    specs = (gpu_spec(gpu.name) for gpu in gpus)
    return any(spec and spec.geforce for spec in specs)


option = Option(
    __name__,
    title="Give the GPUs one GPUDirect clique (x-nv-gpudirect-clique)",
    phase="P2",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    isolation_cost="the GPUs of this VM may write into each other’s memory; nothing outside the VM",
    rollback="shut down, restore the VM configuration (or `qm set VMID --delete args`), start",
    verified_by="gates driver, delivered, collective and used; then an A/B of the workload",
    changes=(
        "vm.args",
        "vm.clique",
        "vm.qemu_args",
        "guest.clique_capability",
        "guest.p2p_read",
        "guest.p2p_write",
        "guest.nccl_transports",
    ),
    p2p_after=P2pCode.OK,
    judge=judge,
    scripted=True,
)
