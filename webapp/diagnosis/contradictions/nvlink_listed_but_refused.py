"""`topo -m` lists NVLinks between GPUs whose peer access over NVLink the driver refuses.

Source: nvidia-smi manual, topo -m and topo -p2p n.
"""

from collections.abc import Iterator

from agents.facts.p2p import P2P_NVLINK, TOPOLOGY, P2pCode
from webapp.diagnosis.case import Case
from webapp.diagnosis.rule import Clash, Rule, of_one_epoch


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    topology, matrix = facts.value(TOPOLOGY), facts.value(P2P_NVLINK)
    if not topology or not matrix or not of_one_epoch(facts, TOPOLOGY, P2P_NVLINK):
        return
    codes = matrix.pairs()
    linked = [pair for pair, link in topology.gpu_links().items() if link.startswith("NV")]
    refused = [pair for pair in linked if codes.get(pair, P2pCode.OK) is not P2pCode.OK]
    if refused:
        text = (
            f"the topology matrix lists NVLinks on {len(linked)} ordered pairs, and the driver refuses peer "
            f"access over NVLink on {len(refused)} of them"
        )
        yield text, facts.refs(TOPOLOGY, P2P_NVLINK)


rule = Rule(__name__, "NVLink is listed and its peer access refused", check)
