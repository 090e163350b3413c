"""The driver refuses P2P for another reason than a missing clique.

Reasons: NVIDIA open kernel modules 595.45.04, p2p_caps.c and ctrl0000system.h (MIG, mixed chips, vGPU,
an I/O hub, a registry key, an unknown chipset, a clique that is there and does not help).

Source: NVIDIA open kernel modules 595.45.04, p2p_caps.c and ctrl0000system.h.
"""

from agents.facts.gpu import CLIQUE_CAPABILITY, GPUS
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pCode
from webapp.diagnosis.case import Case, Path, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.gates.driver import meaning
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.situation import Situation


def assess(case: Case) -> Verdict:
    facts = case.facts
    driver = next((path for path in Path if case.fails("driver", path)), None)
    if driver is None:
        passed = [gate for path in Path if (gate := case.passed("driver", path))]
        if passed:
            return refuted(Claim(f"the driver allows it: {passed[0].why}", passed[0].evidence))
        return Verdict(VerdictKind.OPEN, missing=probes_for(facts, P2P_READ, P2P_WRITE))
    reasons = [*_configured(case), *_by_code(case, driver)]
    if reasons:
        return Verdict(VerdictKind.SUPPORTED, tuple(reasons))
    gpus = facts.value(GPUS) or ()
    excluded = bool(gpus) and all(gpu.mig is False for gpu in gpus) and len({g.name for g in gpus}) == 1
    text = "MIG is off and the GPUs are of one model; confidential mode cannot be seen from here"
    against = (Claim(text, facts.refs(GPUS)),) if excluded else ()
    return Verdict(VerdictKind.OPEN, (), against, probes_for(facts, GPUS, CLIQUE_CAPABILITY))


def _configured(case: Case) -> list[Claim]:
    facts, granted = case.facts, case.passed("granted")
    gpus, refs = facts.value(GPUS) or (), facts.refs(GPUS)
    reasons = []
    if any(gpu.mig for gpu in gpus):
        reasons.append(measured_claim("MIG mode is on; a MIG device has no peers", refs))
    names = sorted({gpu.name for gpu in gpus if gpu.name})
    if len(names) > 1:
        text = f"the GPUs are of different models: {', '.join(names)}"
        reasons.append(measured_claim(text, refs))
    if any("vgpu" in (gpu.virtualisation_mode or "").lower() for gpu in gpus):
        reasons.append(measured_claim("the GPUs are vGPUs, not passed through", refs))
    if granted and granted.evidence:
        text = f"the clique is there, and still the driver refuses: {granted.why}"
        reasons.append(measured_claim(text, granted.evidence))
    return reasons


def _by_code(case: Case, path: Path) -> list[Claim]:
    """Codes that name their reason; NS does only where no clique is needed."""
    reads, writes = case.situation.codes(path)
    seen = {*reads.values(), *writes.values()} - {P2pCode.OK, P2pCode.UNKNOWN}
    if P2pCode.NS in seen and path is Path.PCIE and not case.situation.outside_kvm:
        seen -= {P2pCode.NS}
    return [_answer(case.situation, path, code) for code in sorted(seen)]


def _answer(situation: Situation, path: Path, code: P2pCode) -> Claim:
    refs = situation.facts.refs(P2P_READ, P2P_WRITE) + situation.platform_refs
    return measured_claim(f"the driver answers {code}: {meaning(situation.aside, path, code)}", refs)


hypothesis = Hypothesis(
    __name__,
    "The driver refuses P2P for another reason.",
    assess,
    "“Peer reads the driver allows” and writes are OK on every pair.",
    rank=540,
    plain="The driver refuses the GPUs direct access to each other.",
    decided_by=("p2p_matrix",),
)
