"""P2P is allowed, but NCCL's level keeps it from pairs this far apart.

The default level is PXB; on AMD processors with at most two GPUs it is SYS. NCCL_P2P_LEVEL=PHB or SYS reaches
further. The old numbers mean 3 PHB, 4 and 5 SYS; NCCL_P2P_DISABLE=1 is the lowest level.

Source: NCCL 2.30.7, src/graph/paths.cc.
"""

from agents.facts.nccl import NCCL_ENV, NCCL_TRANSPORTS
from agents.facts.p2p import TOPOLOGY, WORST_LINK
from webapp.diagnosis.case import Case, Gate, Path, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim, measured_claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probes_for

FAR = frozenset({"PHB", "NODE", "SYS"})
REACHES_ALL = frozenset({"SYS", "4", "5"})
REACHES_FAR = REACHES_ALL | {"PHB", "3"}
"""Every pair; and every pair of one memory node (NCCL 2.30.7, src/graph/topo.h: PHB before SYS)."""


def assess(case: Case) -> Verdict:
    facts = case.facts
    off = _switched_off(case)
    if off:
        return Verdict(VerdictKind.SUPPORTED, off)
    driver = _closed(case)
    if driver:
        return refuted(Claim("the level matters only where the driver allows P2P over PCIe", driver.evidence))
    used = case.passed("used")
    if used:
        return refuted(measured_claim(used.why, used.evidence))
    level = (facts.value(NCCL_ENV) or {}).get("NCCL_P2P_LEVEL", "").upper()
    links = _far_links(facts)
    missing = probes_for(facts, NCCL_TRANSPORTS, NCCL_ENV, TOPOLOGY)
    if level in REACHES_FAR and (level in REACHES_ALL or "SYS" not in links):
        text = f"NCCL_P2P_LEVEL={level} reaches across host bridges"
        claim = Claim(text, facts.refs(NCCL_ENV), None, Basis.LITERATURE)
        enough = level in REACHES_ALL or facts.value(TOPOLOGY) is not None
        return Verdict(VerdictKind.REFUTED if enough else VerdictKind.OPEN, (), (claim,), missing)
    if not links or (case.situation.gpu_count or 0) <= 2:
        return Verdict(VerdictKind.OPEN, missing=missing)
    which = f"NCCL_P2P_LEVEL={level}" if level else "NCCL’s default level PXB"
    text = f"pairs are {'/'.join(links)} apart, beyond {which}"
    far = Claim(text, facts.refs(TOPOLOGY, WORST_LINK), None, Basis.LITERATURE)
    driver = case.passed("driver") if case.fails("used") else None
    seen = facts.value(NCCL_TRANSPORTS, where=lambda seen: seen.shm) if driver else None
    if driver and seen:
        text = f"the driver allows P2P, yet the NCCL log shows {seen.shm} connections by SHM"
        claim = measured_claim(text, facts.refs(NCCL_TRANSPORTS) + driver.evidence)
        return Verdict(VerdictKind.SUPPORTED, (claim, far), (), missing)
    return Verdict(VerdictKind.OPEN, (far,), (), missing)


def _switched_off(case: Case) -> tuple[Claim, ...]:
    """NCCL_P2P_DISABLE=1, where the driver allows what it leaves unused, NVLink or PCIe."""
    disabled = case.facts.value(NCCL_ENV, where=lambda env: env.get("NCCL_P2P_DISABLE", "0") not in {"", "0"})
    gates = (case.passed("driver", path) for path in Path)
    driver = next((gate for gate in gates if gate), None) if disabled else None
    if driver is None:
        return ()
    over = "NVLink" if driver.path is Path.NVLINK else "PCIe"
    text = f"NCCL_P2P_DISABLE=1 is set, though the driver allows P2P over {over}"
    return (measured_claim(text, case.facts.refs(NCCL_ENV) + driver.evidence),)


def _closed(case: Case) -> Gate | None:
    """The driver’s answer, where it opens no path over PCIe."""
    closed = case.fails("driver") or case.not_applicable("driver")
    driver = case.gate("driver") if closed else None
    return driver if driver and driver.evidence else None


def _far_links(facts: Facts) -> list[str]:
    topology, worst = facts.value(TOPOLOGY), facts.value(WORST_LINK)
    links = set(topology.gpu_links().values()) if topology else {worst} if worst else set()
    return sorted(links & FAR)


hypothesis = Hypothesis(
    __name__,
    "NCCL’s P2P level is too low for this topology.",
    assess,
    "“NCCL log” shows nothing but P2P, or a level that reaches every pair of “Topology matrix”; or "
    "“Peer reads the driver allows” is a refusal, or no pair goes over PCIe.",
    rank=610,
    plain="The GPUs may reach each other directly, and a setting keeps the software from using it.",
    headline="The driver allows peer-to-peer, and NCCL does not use it.",
)
