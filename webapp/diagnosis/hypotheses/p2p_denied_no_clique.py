"""The driver refuses P2P because this is a KVM guest whose GPUs carry no GPUDirect clique.

With KVM visible and no clique the guest driver never marks the chipset as known and answers NS for every
pair. MIG, mixed chips, vGPU and confidential mode give NS too and are excluded first.

Source: NVIDIA open kernel modules 595.45.04, p2p_caps.c.
"""

from agents.facts.gpu import CLIQUE_CAPABILITY, GPUS, Gpu
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pCode
from agents.facts.platform import KVM_VISIBLE
from agents.facts.vm import QEMU_COMMANDS
from webapp.diagnosis.case import Bound, Case, GateState, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, Range, measured_claim
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probe_of, probes_for
from webapp.diagnosis.wording import why_no_clique

_NAME = "The driver refuses P2P because the VM grants no GPUDirect clique."


def assess(case: Case) -> Verdict:
    facts = case.facts
    against = _against(case)
    if against:
        return refuted(against)
    reads, writes = case.situation.codes()
    answers = {*reads.values(), *writes.values()}
    missing = probes_for(facts, P2P_READ, P2P_WRITE, GPUS, CLIQUE_CAPABILITY, QEMU_COMMANDS)
    driver = case.gate("driver")
    outdated = driver is not None and driver.state is GateState.UNKNOWN  # asked before the clique came
    if P2pCode.NS not in answers or outdated or not case.situation.in_kvm or case.situation.kvm_hidden:
        return Verdict(VerdictKind.OPEN, (), (), missing)
    hidden = case.situation.kvm_hidden
    sees = "that sees KVM" if hidden is False else "(whether it sees KVM was not read)"
    text = f"the driver answers NS in a KVM guest {sees}: its policy without a clique"
    for_ = [Claim(text, facts.refs(P2P_READ, P2P_WRITE) + case.situation.platform_refs), *_granted(case)]
    if hidden is None:
        return Verdict(VerdictKind.OPEN, tuple(for_), (), (probe_of(KVM_VISIBLE), *missing))
    others = _others_excluded(facts.value(GPUS) or ())
    if others is None:
        return Verdict(VerdictKind.OPEN, tuple(for_), (), (probe_of(GPUS), *missing))
    for_.append(Claim(others, facts.refs(GPUS)))
    return Verdict(VerdictKind.SUPPORTED, tuple(for_), (), missing, _share(case.single_stream))


def _against(case: Case) -> Claim | None:
    facts, driver, granted = case.facts, case.gate("driver"), case.gate("granted")
    elsewhere = case.situation.outside_kvm
    if elsewhere and not case.situation.cloud:
        return Claim(f"this is not a KVM guest but {elsewhere.words}", case.situation.platform_refs)
    if driver and driver.state is GateState.PASS and driver.evidence:
        return Claim(f"the driver refuses nothing over PCIe: {driver.why}", driver.evidence)
    if driver and driver.state is GateState.NOT_APPLICABLE and driver.evidence:
        return Claim(f"no two GPUs would use P2P over PCIe: {driver.why}", driver.evidence)
    if granted and granted.state is GateState.PASS:
        return measured_claim(granted.why, granted.evidence)
    gpus = facts.value(GPUS) or ()
    if any(gpu.mig for gpu in gpus):
        return Claim("MIG mode is on, which forbids P2P by itself", facts.refs(GPUS))
    return None


def _granted(case: Case) -> list[Claim]:
    gate = case.gate("granted")
    seen = gate is not None and gate.state is GateState.FAIL
    return [measured_claim(gate.why, gate.evidence)] if gate and seen else []


def _others_excluded(gpus: tuple[Gpu, ...]) -> str | None:
    """What else gives NS and was looked at; None while MIG or mixed chips are not excluded."""
    names = {gpu.name for gpu in gpus}
    without_mig = all(gpu.mig is False or "GeForce" in (gpu.name or "") for gpu in gpus)
    if not gpus or len(names) != 1 or None in names or not without_mig:
        return None
    modes = {(gpu.virtualisation_mode or "").lower() for gpu in gpus}
    if modes - {"", "pass-through", "none"}:
        return None
    vgpu = "" if modes <= {"pass-through"} else " and these are no vGPUs"
    return f"MIG is off and all GPUs are {names.pop()}; that confidential mode is off{vgpu} is assumed"


def _share(bound: Bound | None) -> Range | None:
    """Milliseconds of a step that P2P could save, from the bound's gain."""
    if bound is None or not bound.step_ms or not bound.max_gain_p2p:
        return None
    low, high = bound.max_gain_p2p
    return (bound.step_ms[0] * (1 - 1 / low), bound.step_ms[1] * (1 - 1 / high)) if low > 0 else None


def _plain(case: Case) -> str:
    why = why_no_clique(case.ladder)
    return f"The driver refuses the GPUs direct access to each other, {why} the virtual machine does not permit it."


hypothesis = Hypothesis(
    __name__,
    _NAME,
    assess,
    "“Peer reads the driver allows” and writes are OK or no pair goes over PCIe, “GPUDirect clique” is on "
    "every GPU, “Kind of virtual machine” is no KVM, or “GPUs the driver lists” shows MIG on.",
    rank=530,
    plain=_plain,
    decided_by=("p2p_matrix",),
    first_guess=6,
)
