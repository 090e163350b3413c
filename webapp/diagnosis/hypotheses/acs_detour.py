"""P2P works but takes a detour: ACS redirect on a switch that GPUs share sends it to the root port.

Without a shared switch there is nothing to turn in, and ACS costs nothing.

Source: PCI Express base specification, Access Control Services.
"""

from collections import Counter

from agents.facts.host import ACS, GPU_PATHS
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probe_of, probes_for
from webapp.diagnosis.situation.topology import peer_redirects


def assess(case: Case) -> Verdict:
    facts, driver = case.facts, case.failed("driver")
    if driver:
        return refuted(Claim("the driver refuses P2P, so no traffic takes any path between peers", driver.evidence))
    paths = facts.value(GPU_PATHS)
    if paths is None:
        return Verdict(VerdictKind.OPEN, missing=probes_for(facts, GPU_PATHS, ACS))
    switches = Counter(path.switch for path in paths if path.switch)
    shared = [switch for switch, gpus in switches.items() if gpus > 1]
    if not shared:
        return refuted(measured_claim("no two GPUs share a PCIe switch on the host", facts.refs(GPU_PATHS)))
    text = f"GPUs share {len(shared)} PCIe switches on the host"
    together = measured_claim(text, facts.refs(GPU_PATHS))
    redirects = peer_redirects(facts)
    turned = [redirects(path) for path in paths if path.switch in shared]
    if not any(turned) and None in turned:
        return Verdict(VerdictKind.OPEN, (together,), (), probes_for(facts, ACS) or (probe_of(ACS),))
    if not any(turned):
        return refuted(measured_claim("no port below the shared switches redirects by ACS", facts.refs(ACS)))
    text = f"ACS redirects {turned.count(True)} of these {len(turned)} GPUs’ traffic to the root port"
    detour = measured_claim(text, facts.refs(ACS))
    kind = VerdictKind.SUPPORTED if case.passes("driver") else VerdictKind.OPEN
    return Verdict(kind, (together, detour), (), ("bench.copy",))


hypothesis = Hypothesis(
    __name__,
    "ACS on a shared switch makes P2P take a detour.",
    assess,
    "“PCI tree of the host” shows no two GPUs below one switch, “ACS on the bridges” no redirect "
    "below it, or “Peer reads the driver allows” a refusal.",
    rank=620,
    plain="Data between the GPUs takes a longer way through the machine than it needs to.",
    headline="Traffic between GPUs of one switch takes a detour over the root port.",
)
