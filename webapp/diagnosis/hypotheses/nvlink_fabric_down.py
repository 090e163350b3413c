"""NVLink is there but its fabric is not up: fabric manager or IMEX has not completed.

The state stands in the Fabric section of `nvidia-smi -q`.

Source: nvidia-smi manual, Fabric; NVIDIA Fabric Manager user guide.
"""

import re

from agents.facts.gpu import FABRIC, GPUS, NVLINKS, Gpu
from agents.facts.p2p import P2P_NVLINK, P2P_READ, TOPOLOGY
from webapp.diagnosis.case import Case, Path, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.hypothesis import Hypothesis, Severity, refuted
from webapp.diagnosis.missing import probes_for

_MAY_HAVE_NVLINK = re.compile(r"\b(?:V100|A100|A800|H100|H200|H800|H20|B200|B300|GB200|GB300|SXM\d?)\b")


def assess(case: Case) -> Verdict:
    facts = case.facts
    fabric = case.failed("fabric", Path.NVLINK)
    if fabric:
        return Verdict(VerdictKind.SUPPORTED, (measured_claim(fabric.why, fabric.evidence),))
    links = facts.value(NVLINKS)
    allowed_since = facts.newer(P2P_READ, NVLINKS) and case.passes("driver", Path.NVLINK)
    if links and not allowed_since and all(gpu.inactive and not gpu.active for gpu in links):
        text = f"all NVLinks of {len(links)} GPUs are inactive"
        return Verdict(VerdictKind.SUPPORTED, (measured_claim(text, facts.refs(NVLINKS)),))
    driver = case.passed("driver", Path.NVLINK)
    if driver:
        return refuted(measured_claim(f"the driver allows P2P over NVLink: {driver.why}", driver.evidence))
    fabric = case.passed("fabric", Path.NVLINK) if case.situation.fabric_state else None
    if fabric:
        return refuted(measured_claim(fabric.why, facts.refs(FABRIC)))
    if facts.value(TOPOLOGY) and not case.situation.has_nvlink and facts.value(GPUS, where=_without_nvlink):
        text = "the topology matrix lists no NVLink, and this model has no switch fabric"
        return refuted(Claim(text, facts.refs(TOPOLOGY, GPUS)))
    return Verdict(VerdictKind.OPEN, missing=probes_for(facts, TOPOLOGY, FABRIC, P2P_NVLINK))


def _without_nvlink(gpus: tuple[Gpu, ...]) -> bool:
    return bool(gpus) and not any(_MAY_HAVE_NVLINK.search(gpu.name or "") for gpu in gpus)


hypothesis = Hypothesis(
    __name__,
    "The NVLink fabric is not up.",
    assess,
    "“Peer reads the driver allows” and writes are OK over NVLink, “NVLinks and NVSwitch fabric” says "
    "Completed, or “Topology matrix” lists no NVLink on models without one.",
    rank=210,
    plain="The direct links between the GPUs are there but not set up.",
    headline="The NVLink fabric is not up, so the GPUs cannot reach each other over it.",
    severity=Severity.SETUP,
)
