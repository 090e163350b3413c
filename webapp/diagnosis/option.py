"""What an option is: a possible change, with what it costs and how it is undone; and how it words its advice."""

from collections.abc import Callable
from dataclasses import dataclass

from agents.facts.bench import PROFILE
from agents.facts.p2p import P2pCode
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.claim import Basis, Claim, EvidenceRef, Range, measured_claim
from webapp.diagnosis.situation.platform import Platform

Refs = tuple[EvidenceRef, ...]

# What is done in one maintenance step.
PHASES: dict[str, str] = {
    "P0": "Evidence and backup, before anything changes",
    "P1": "Inside the guest: engine profile, graphs, backends, NCCL settings",
    "P2": "The VM: CPU type, visible KVM, clique; then gates 4 to 7 of the ladder",
    "P3": "Optional: q35 and pcie=1 together, the network name fixed first",
    "P4": "The machine itself: slots and links, NUMA, hugepages, CPU affinity",
    "P5": "Other ground: without a VM, a container, a switch board",
}
# From a third of the step on it is worth a try before anything else.
LARGE_SHARE = 1 / 3
KERNEL_SOURCE = "SGLang and vLLM server arguments, 2026"


@dataclass(frozen=True, slots=True)
class Option:
    """One file of webapp/diagnosis/options holds one, named `option`. Its id is the file's name.

    phase: "P0" … "P5". isolation_cost: what security isolation it removes ("none" when none).
    changes: ids of the facts that are meant to differ once it is carried out. p2p_after: what the driver
    then answers; None: as before, or not predicted where "guest.p2p_read" is among `changes`.
    by_hand: what to type where no script does it, code in backticks.
    scripted: the script of its phase carries it out; every other option is done by hand.
    kernel_option: what it adds to the host's kernel command line, for its admin; N stands for the VM's memory in GiB.
    """

    module: str
    title: str
    phase: str
    actor: Actor
    downtime: Restart
    rollback: str
    verified_by: str
    judge: Callable[[Case], Advice]
    isolation_cost: str = "none"
    changes: tuple[str, ...] = ()
    p2p_after: P2pCode | None = None
    by_hand: str = ""
    scripted: bool = False
    kernel_option: str = ""

    @property
    def id(self) -> str:
        return self.module.rpartition(".")[2]


def because(text: str, source: str, refs: Refs = (), span: Range | None = None) -> Claim:
    """source: what the sentence rests on beside the evidence; it alone makes the claim literature."""
    basis = Basis.INFERRED if refs else Basis.LITERATURE
    return Claim(f"{text} ({source})", refs, span, basis)


def seen(text: str, refs: Refs, source: str) -> Claim:
    """What an output shows by itself; without the output it falls back on its source."""
    return measured_claim(text, refs) if refs else because(text, source)


def advise(status: OptionStatus, *why: Claim, effect: Range | None = None, after: str = "") -> Advice:
    """What has no effect leaves the throughput as it is: a factor of 1."""
    unchanged = (1.0, 1.0) if status is OptionStatus.NO_EFFECT else None
    return Advice(status, why, effect or unchanged, after)


def no_vm(case: Case) -> Advice | None:
    """What only a VM's host can set has no effect where there is no VM."""
    if case.situation.outside_kvm is not Platform.BARE_METAL:
        return None
    why = seen("there is no VM: the machine says it runs on bare metal", case.situation.platform_refs, "")
    return advise(OptionStatus.NO_EFFECT, why)


def p2p_effect(case: Case) -> Range | None:
    """Factor on single-stream throughput that P2P could bring."""
    bound = case.bound_with("max_gain_p2p")
    return bound.max_gain_p2p if bound else None


def by_share(case: Case, part: str) -> Advice:
    """part: "attention" or "MoE". At most what is left if these kernels took no time at all."""
    profile = case.facts.value(PROFILE)
    if profile is None:
        text = f"the profile comes first: it says what {part} kernels cost"
        return advise(OptionStatus.POSSIBLE, because(text, KERNEL_SOURCE))
    part_ms = profile.moe_ms if part == "MoE" else profile.attention_ms
    kernels_ms = profile.nccl_ms + profile.attention_ms + profile.moe_ms + profile.other_ms
    step_ms = kernels_ms + profile.gaps_ms
    share = part_ms / step_ms if step_ms else 0.0
    text = f"{part} kernels take {share * 100:.0f} % of the profiled step"
    claim = Claim(text, case.facts.refs(PROFILE), (share, share), Basis.MEASURED)
    if share < LARGE_SHARE:
        return advise(OptionStatus.POSSIBLE, claim)
    gain = 1 / (1 - share) if share < 1 else None
    return advise(OptionStatus.RECOMMENDED, claim, effect=(1.0, gain) if gain else None)
