"""Does the engine use it: the transports in its own NCCL log.

Source: NCCL 2.30.7, src/transport.
"""

from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2P_NVLINK, TOPOLOGY
from agents.facts.workload import PARALLELISM
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.gates import driver
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.own_machine import unnamed_cards

GATE = "used"


def judge(situation: Situation, path: Path) -> Gate:
    facts = situation.facts
    seen = facts.value(NCCL_TRANSPORTS)
    refs = facts.refs(NCCL_TRANSPORTS)
    if seen is None or not (seen.p2p or seen.shm or seen.net):
        refused = driver.refuses(situation, path)
        expected = "SHM: NCCL decides once, at start, by the driver’s answer" if refused else None
        unread = facts.unread(NCCL_TRANSPORTS)
        why = "no NCCL log with transports was read" + (f" (what was read: {unread})" if unread else "")
        return Gate(GATE, path, GateState.UNKNOWN, why, refs if unread else (), expected)
    counts = _counts(seen) + _over(facts, seen) + unnamed_cards(facts, NCCL_TRANSPORTS)
    mixed_paths = bool(situation.pairs.nvlink and situation.pairs.pcie)
    ranks = _ranks(situation)
    if seen.p2p < ranks and not (seen.shm or seen.net):
        why = f"the NCCL log shows {counts}, fewer than the {ranks} GPUs of one ring: it is a part"
        return Gate(GATE, path, GateState.UNKNOWN, why, refs)
    if seen.p2p and ((path is Path.NVLINK and mixed_paths) or not (seen.shm or seen.net)):
        return Gate(GATE, path, GateState.PASS, f"the NCCL log shows {counts}", refs)
    return Gate(GATE, path, GateState.FAIL, f"the NCCL log shows {counts}", refs)


def _ranks(situation: Situation) -> int:
    """GPUs in one ring, each of which names the one that it sends to; 0 where nobody knows."""
    parallel = situation.facts.value(PARALLELISM)
    return parallel.tp if parallel else situation.gpu_count or 0


def _counts(seen: NcclTransports) -> str:
    """ "48 connections by SHM, 8 by P2P"."""
    counts = [("P2P", seen.p2p), ("SHM", seen.shm), ("NET", seen.net)]
    return ", ".join(
        f"{count} {'connection' if count == 1 else 'connections'} by {name}" for name, count in counts if count
    )


def _over(facts: Facts, seen: NcclTransports) -> str:
    """The log does not name the path, so without the topology a P2P connection may be NVLink's."""
    unknown = facts.value(TOPOLOGY) is None and facts.value(P2P_NVLINK) is None
    return "; over PCIe or NVLink, the topology was not read" if seen.p2p and unknown else ""


rung = Rung(
    GATE,
    judge,
    place=7,
    headline="The engine’s log shows connections that are not peer-to-peer.",
    decided_by=("nccl_log", "stack_dump"),
)
