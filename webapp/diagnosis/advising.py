"""How options word what they say: a claim with its evidence, else with the source that says so."""

from __future__ import annotations

from webapp.diagnosis.case import Advice, Case, OptionStatus
from webapp.diagnosis.claim import Basis, Claim, EvidenceRef, Range
from webapp.diagnosis.ground import Ground, ground_refs, without_kvm

Refs = tuple[EvidenceRef, ...]


def because(text: str, source: str, refs: Refs = (), span: Range | None = None) -> Claim:
    """source: what the sentence rests on beside the evidence; it alone makes the claim literature."""
    basis = Basis.INFERRED if refs else Basis.LITERATURE
    return Claim(f"{text} ({source})", refs, span, basis)


def seen(text: str, refs: Refs, source: str) -> Claim:
    """What an output shows by itself; without the output it falls back on its source."""
    return Claim(text, refs, None, Basis.MEASURED) if refs else because(text, source)


def advise(status: OptionStatus, *why: Claim, effect: Range | None = None, after: str = "") -> Advice:
    """What has no effect leaves the throughput as it is: a factor of 1."""
    unchanged = (1.0, 1.0) if status is OptionStatus.NO_EFFECT else None
    return Advice(status, why, effect or unchanged, after)


def no_vm(case: Case) -> Advice | None:
    """What only a VM's host can set has no effect where there is no VM."""
    if without_kvm(case.facts) is not Ground.BARE_METAL:
        return None
    why = seen("there is no VM: the machine says it runs on bare metal", ground_refs(case.facts), "")
    return advise(OptionStatus.NO_EFFECT, why)


def p2p_effect(case: Case) -> Range | None:
    """Factor on single-stream throughput that P2P could bring."""
    bound = case.bound_with("max_gain_p2p")
    return bound.max_gain_p2p if bound else None
