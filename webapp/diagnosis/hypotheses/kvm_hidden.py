"""KVM is hidden from the guest, so the driver takes it for bare metal and ignores a clique.

`hidden=1` on the cpu line and `x-vga=1` on a hostpci line both do it; the driver detects KVM by its CPUID
signature.

Source: Proxmox qemu-server 9.2.6; NVIDIA open kernel modules 595.45.04, hypervisor.c.
"""

from agents.facts.p2p import P2P_READ, P2pCode
from agents.facts.platform import DMI, KVM_VISIBLE, VIRT_KIND
from agents.facts.vm import VM_CPU_HIDDEN
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probe_of, probes_for


def assess(case: Case) -> Verdict:
    facts = case.facts
    hidden, configured = case.situation.kvm_hidden, facts.value(VM_CPU_HIDDEN, where=bool)
    differs = hidden is not None and hidden != bool(configured)
    if differs and facts.newer(VM_CPU_HIDDEN, KVM_VISIBLE) and facts.newer(VM_CPU_HIDDEN, VIRT_KIND):
        return _since_configured(facts, configured)
    if hidden is False:
        return refuted(measured_claim("the guest sees KVM’s signature", facts.refs(KVM_VISIBLE, VIRT_KIND)))
    elsewhere = case.situation.outside_kvm
    if elsewhere and not configured:
        return refuted(Claim(f"this is not a KVM guest but {elsewhere.words}", case.situation.platform_refs))
    for_ = []
    if hidden:
        text = "this is a QEMU guest, and KVM’s CPUID signature is not visible in it"
        for_.append(measured_claim(text, facts.refs(VIRT_KIND, KVM_VISIBLE, DMI)))
    if configured:
        text = "the VM’s configuration hides KVM (hidden=1, x-vga=1 or kvm=off)"
        for_.append(measured_claim(text, facts.refs(VM_CPU_HIDDEN)))
    if for_ and P2pCode.CNS in case.situation.codes()[0].values():
        for_.append(Claim("the driver answers CNS, as it does when it takes a VM for bare metal", facts.refs(P2P_READ)))
    kind = VerdictKind.SUPPORTED if for_ else VerdictKind.OPEN
    return Verdict(kind, tuple(for_), (), probes_for(facts, KVM_VISIBLE))


def _since_configured(facts: Facts, configured: bool | None) -> Verdict:
    """The VM was changed after the guest was looked at: what the guest saw then tells nothing of now."""
    missing = (probe_of(KVM_VISIBLE),)
    does = "hides KVM (hidden=1, x-vga=1 or kvm=off)" if configured else "no longer hides KVM"
    claim = measured_claim(f"the VM’s configuration {does}", facts.refs(VM_CPU_HIDDEN))
    if configured:
        return Verdict(VerdictKind.SUPPORTED, (claim,), (), missing)
    return Verdict(VerdictKind.OPEN, (), (claim,), missing)


hypothesis = Hypothesis(
    __name__,
    "KVM is hidden from the guest.",
    assess,
    "“Kind of virtual machine” or “Processor” shows KVM’s signature in the guest, or that this is no KVM guest.",
    rank=520,
    plain="A setting hides from the GPUs’ driver that it runs in a virtual machine.",
    headline="KVM is hidden from the guest, so its driver would ignore a clique.",
)
