"""Staging buffers lie on the wrong NUMA node.

A GPU without a node (N/A) costs nothing where the guest has one node; with several, NCCL cannot choose the
near one. A VM over two sockets without virtual NUMA hides them.

Source: NCCL 2.30.7, src/graph/topo.cc.
"""

from agents.facts.gpu import GPU_NUMA
from agents.facts.host import PLATFORM
from agents.facts.p2p import TOPOLOGY
from agents.facts.platform import NUMA_NODES
from agents.facts.vm import VM_NUMA
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probe_of, probes_for
from webapp.diagnosis.situation.platform import Platform


def assess(case: Case) -> Verdict:
    facts, nodes = case.facts, case.facts.value(NUMA_NODES)
    platform = facts.value(PLATFORM, where=lambda platform: platform.sockets)
    sockets = platform.sockets if platform else None
    if not nodes:
        return Verdict(VerdictKind.OPEN, missing=probes_for(facts, NUMA_NODES))
    if len(nodes) > 1:
        return _several_nodes(facts, len(nodes))
    text = "the machine has one NUMA node, so a GPU without a node costs nothing by itself"
    one_node = measured_claim(text, facts.refs(NUMA_NODES))
    if sockets == 1 or case.situation.outside_kvm is Platform.BARE_METAL:
        return refuted(one_node)
    for_: tuple[Claim, ...] = ()
    if sockets and sockets > 1 and facts.value(VM_NUMA) is False:
        text = f"the host has {sockets} sockets and the VM no virtual NUMA, so its memory may span both"
        for_ = (Claim(text, facts.refs(PLATFORM, VM_NUMA)),)
    missing = probes_for(facts, VM_NUMA) if sockets else (probe_of(PLATFORM), *probes_for(facts, VM_NUMA))
    return Verdict(VerdictKind.OPEN, for_, (one_node,), missing)


def _several_nodes(facts: Facts, count: int) -> Verdict:
    placed, topology = facts.value(GPU_NUMA), facts.value(TOPOLOGY)
    if placed is not None:
        without = [item.gpu for item in placed if item.numa_node is None]
    elif topology and topology.numa_affinity:
        cells = zip(topology.devices, topology.numa_affinity, strict=False)
        without = [name for name, node in cells if name.startswith("GPU") and node is None]
    else:
        return Verdict(VerdictKind.OPEN, missing=probes_for(facts, GPU_NUMA, TOPOLOGY))
    refs = facts.refs(NUMA_NODES, GPU_NUMA if placed is not None else TOPOLOGY)
    if without:
        text = f"{count} NUMA nodes, and {len(without)} GPUs report none: buffers land on either"
        return Verdict(VerdictKind.SUPPORTED, (Claim(text, refs),))
    return refuted(measured_claim(f"every GPU reports its NUMA node, of {count}", refs))


hypothesis = Hypothesis(
    __name__,
    "Staging buffers lie on the wrong NUMA node.",
    assess,
    "Every GPU reports one of several nodes (“NUMA nodes”), or there is one node on bare metal or on "
    "a host with one socket (“Host platform”).",
    rank=650,
    plain="Memory that the GPUs share lies far from some of them.",
)
