"""The driver refuses P2P on every pair, and an NCCL log shows P2P: they are of different moments.

NCCL takes P2P only where NVML answers OK for reads and writes.

Source: NCCL 2.30.7, src/graph/paths.cc.
"""

from collections.abc import Iterator

from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pCode
from webapp.diagnosis.case import Case
from webapp.diagnosis.rule import Clash, Rule, of_one_epoch


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    seen, reads = facts.value(NCCL_TRANSPORTS), facts.value(P2P_READ) or facts.value(P2P_WRITE)
    codes = set(reads.pairs().values()) if reads else set()
    if not of_one_epoch(facts, NCCL_TRANSPORTS, P2P_READ if facts.value(P2P_READ) else P2P_WRITE):
        return
    if seen and seen.p2p and codes and P2pCode.OK not in codes:
        text = (
            f"the driver answers {'/'.join(sorted(codes))} on every pair, yet the NCCL log shows "
            f"{seen.p2p} connections by P2P"
        )
        yield text, facts.refs(P2P_READ, P2P_WRITE, NCCL_TRANSPORTS)


rule = Rule(__name__, "P2P is refused and yet used by NCCL", check)
