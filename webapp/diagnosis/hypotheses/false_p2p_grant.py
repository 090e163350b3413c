"""P2P is promised and does not deliver: bytes or collectives go wrong or hang where the driver says OK.

A clique is the hypervisor's promise; nothing checks it. Where QEMU could not map a GPU's BAR for the others,
it cannot be kept. GeForce cards in a VM were seen to report OK, full bandwidth, and never to deliver.

Source: QEMU hw/vfio/pci-quirks.c; QEMU hw/vfio/listener.c; NVIDIA/nccl issue 2335.
"""

from agents.facts.bench import ALLREDUCE, DELIVERY
from agents.facts.p2p import P2P_READ
from webapp.diagnosis.case import Case, Gate, GateState, Path, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.hypothesis import Hypothesis, Severity, refuted
from webapp.diagnosis.missing import probes_for


def assess(case: Case) -> Verdict:
    allowed = [p for p in Path if case.passes("driver", p)]
    if not allowed:
        return _nothing_granted(case)
    gates = [g for g in case.gates("delivered", "collective") if g.path in allowed]
    failed = [g for g in gates if g.state is GateState.FAIL]
    passed = [g for g in gates if g.state is GateState.PASS]
    if failed:
        return Verdict(VerdictKind.SUPPORTED, _claims(failed), _claims(passed))
    unmapped = case.failed("mapped") if Path.PCIE in allowed and not passed else None
    if unmapped:
        claim = Claim(f"{unmapped.why}: the driver’s OK cannot be kept", unmapped.evidence)
        return Verdict(VerdictKind.SUPPORTED, (claim,), (), probes_for(case.facts, DELIVERY, ALLREDUCE))
    if passed and len(passed) == len(gates):
        return Verdict(VerdictKind.REFUTED, (), _claims(passed))
    return Verdict(VerdictKind.OPEN, (), _claims(passed), probes_for(case.facts, DELIVERY, ALLREDUCE))


def _nothing_granted(case: Case) -> Verdict:
    refused = [gate for path in Path if (gate := case.failed("driver", path))]
    if not refused:
        return Verdict(VerdictKind.OPEN, missing=probes_for(case.facts, P2P_READ))
    return refuted(Claim("the driver grants nothing that could be false", refused[0].evidence))


def _claims(gates: list[Gate]) -> tuple[Claim, ...]:
    return tuple(measured_claim(gate.why, gate.evidence) for gate in gates)


hypothesis = Hypothesis(
    __name__,
    "P2P is promised but does not deliver.",
    assess,
    "“Do the bytes arrive” is right on every pair and “All-reduce, with P2P and without” both ways; or "
    "“Peer reads the driver allows” is a refusal, so nothing was promised.",
    rank=110,
    plain="Direct access between the GPUs is switched on and cannot be relied on; it should be switched off "
    "before anything else.",
    headline="Peer-to-peer is granted and cannot be relied on: switch it off first.",
    severity=Severity.BROKEN,
    decided_by=("delivery_check",),
)
