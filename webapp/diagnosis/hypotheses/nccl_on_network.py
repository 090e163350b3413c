"""NCCL goes over the network inside one machine: shared memory is off or too small.

`via NET/…` between GPUs of one node means that SHM was refused; containers start with 64 MiB of /dev/shm
(Docker, --shm-size). Where SHM or P2P are used as well, NET may lead to another machine.

Source: NCCL 2.30.7, src/transport/shm.cc.
"""

from agents.facts.nccl import NCCL_ENV, NCCL_TRANSPORTS
from agents.facts.platform import SHM
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.hypothesis import Hypothesis, Severity, refuted
from webapp.diagnosis.missing import probe_of, probes_for

SMALL_MIB = 64


def assess(case: Case) -> Verdict:
    facts, seen = case.facts, case.facts.value(NCCL_TRANSPORTS)
    refs = facts.refs(NCCL_TRANSPORTS)
    if seen and not seen.net and (seen.p2p or seen.shm):
        text = f"connections in the NCCL log: {seen.p2p} by P2P, {seen.shm} by SHM, none by NET"
        return refuted(measured_claim(text, refs))
    for_ = []
    if seen and seen.net:
        text = f"the NCCL log shows {seen.net} connections by NET"
        for_.append(measured_claim(text, refs))
    if facts.value(NCCL_ENV, where=lambda variables: variables.get("NCCL_SHM_DISABLE") == "1"):
        text = "NCCL_SHM_DISABLE=1 leaves only the network where P2P is refused"
        for_.append(measured_claim(text, facts.refs(NCCL_ENV)))
    shm = facts.value(SHM, where=lambda shm: shm.size_mib <= SMALL_MIB)
    if shm:
        for_.append(measured_claim(f"shared memory has {shm.size_mib} MiB, a container’s default", facts.refs(SHM)))
    against = _elsewhere(case)
    missing = probes_for(facts, NCCL_TRANSPORTS, SHM)
    alone = seen and seen.net and not against
    kind = VerdictKind.SUPPORTED if alone else VerdictKind.OPEN
    return Verdict(kind, tuple(for_), against, missing or (probe_of(NCCL_ENV),))


def _elsewhere(case: Case) -> tuple[Claim, ...]:
    """Signs that NET leads to another machine."""
    seen, refs = case.facts.value(NCCL_TRANSPORTS), case.facts.refs(NCCL_TRANSPORTS)
    if not seen or not seen.net:
        return ()
    if case.situation.gpu_count == 1:
        return (Claim("this machine has one GPU, so its peers are elsewhere", refs + case.situation.gpu_count_refs),)
    if seen.shm or seen.p2p:
        return (measured_claim(f"{seen.shm} connections by SHM and {seen.p2p} by P2P stand beside NET", refs),)
    return ()


hypothesis = Hypothesis(
    __name__,
    "NCCL uses the network inside the machine.",
    assess,
    "“NCCL log” shows connections by P2P or SHM and none by NET.",
    rank=220,
    plain="The GPUs of one machine talk to each other over the network, by a wrong setting.",
    headline="The GPUs of one machine talk over the network: the engine’s setup is wrong.",
    severity=Severity.SETUP,
    decided_by=("nccl_log",),
)
