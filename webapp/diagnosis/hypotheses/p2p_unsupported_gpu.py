"""This GPU model has no P2P over PCIe with the stock driver.

GeForce 30, 40 and 50 answer CNS on bare metal too; of RTX PRO 6000, RTX 6000 Ada, L40S, A100, H100 and H200
public outputs of `topo -p2p` show OK. Other models stay open.

Source: NVIDIA open kernel modules 595.45.04; public outputs of `topo -p2p`, up to 2026.
"""

import re

from agents.facts.gpu import GPUS
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pCode
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim, measured_claim
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.situation import Situation

_SUPPORTED = re.compile(r"RTX PRO 6000|RTX 6000 Ada|\b(?:L40S|A100|H100|H200)\b")


def assess(case: Case) -> Verdict:
    facts, driver = case.facts, case.passed("driver")
    if driver:
        return refuted(measured_claim(f"the driver allows it: {driver.why}", driver.evidence))
    names = {gpu.name for gpu in facts.value(GPUS) or () if gpu.name}
    geforce = bool(names) and all("GeForce" in name for name in names)
    if case.situation.exception(lambda situation: P2pCode.GNS in _answers(situation)):
        refs = facts.refs(P2P_READ, P2P_WRITE)
        claim = measured_claim("the driver answers GNS: this GPU model is excluded", refs)
        return Verdict(VerdictKind.SUPPORTED, (claim,))
    if geforce and case.situation.exception(lambda situation: P2pCode.CNS in _answers(situation)):
        text = "GeForce cards with CNS: product policy of the driver, on bare metal as well"
        refs = facts.refs(GPUS, P2P_READ, P2P_WRITE)
        return Verdict(VerdictKind.SUPPORTED, (Claim(text, refs, None, Basis.LITERATURE),))
    if names and all(_SUPPORTED.search(name) for name in names):
        text = f"{', '.join(sorted(names))}: P2P over PCIe works with the stock driver elsewhere"
        return refuted(Claim(text, facts.refs(GPUS), None, Basis.LITERATURE))
    return Verdict(VerdictKind.OPEN, missing=probes_for(facts, GPUS, P2P_READ, P2P_WRITE))


def _answers(situation: Situation) -> set[P2pCode]:
    reads, writes = situation.codes()
    return {*reads.values(), *writes.values()}


hypothesis = Hypothesis(
    __name__,
    "This GPU model has no P2P over PCIe.",
    assess,
    "“Peer reads the driver allows” and writes are OK on every pair; or none is GNS, and “GPUs the "
    "driver lists” has only models that do it elsewhere.",
    rank=510,
    plain="These GPUs are not allowed direct access to each other by their maker.",
)
