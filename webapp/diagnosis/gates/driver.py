"""Does the driver allow it: `nvidia-smi topo -p2p`, reads and writes.

NVML names the codes; what causes each stands in the driver's own source.

Source: NVML, nvmlGpuP2PStatus_t; NVIDIA open kernel modules 595.45.04, p2p_caps.c.
"""

from collections import Counter

from agents.facts.bench import PAIR_MATRICES
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pCode
from agents.facts.vm import VM_ID
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.gates import granted
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.pairs import Pair
from webapp.diagnosis.situation.platform import HYPERVISORS

GATE = "driver"

MEANING = {
    P2pCode.CNS: "the driver does not know the chipset: KVM hidden from the guest, or GeForce policy",
    P2pCode.GNS: "the driver excludes this GPU model or this mix of models",
    P2pCode.TNS: "the path crosses an I/O hub the driver does not support",
    P2pCode.DR: "switched off by a driver registry key",
    P2pCode.NS: "not supported; usual causes are MIG, mixed chips, confidential mode or a fabric not up",
    P2pCode.UNKNOWN: "the driver could not tell",
}
_NS_IN_KVM = (
    "driver policy in a KVM guest without a clique (or with MIG or mixed chips), not a measurement of the PCIe path"
)
_NOT_GRANTED = ", or a hypervisor that grants its guests no P2P"


def state(situation: Situation, path: Path) -> GateState:
    """For another gate, which uses none of the words."""
    inner = situation.scope()
    gate = judge(inner, path)
    situation.facts.reads.add(inner.facts.reads, words=False)
    return gate.state


def refuses(situation: Situation, path: Path) -> bool:
    """For a rule to which any other answer is as if there were none."""
    return situation.exception(lambda situation: state(situation, path) is GateState.FAIL)


def judge(situation: Situation, path: Path) -> Gate:
    reads, writes = situation.codes(path)
    refs = situation.facts.refs(P2P_READ, P2P_WRITE)
    refused = _refused(reads, writes)
    turned = granted.turned_since(situation, path, GateState.FAIL if refused else GateState.PASS)
    if turned and (reads or writes):
        seen = Counter({**writes, **reads}.values()).most_common(1)[0]
        why = f"topo -p2p was read before the last change only ({seen[0]} on {seen[1]} ordered pairs); "
        return Gate(GATE, path, GateState.UNKNOWN, why + f"since then: {turned.why}", refs + turned.evidence)
    if refused:
        why = _why(situation.aside, path, refused, {*reads, *writes})
        return Gate(GATE, path, GateState.FAIL, why, refs + situation.platform_refs + situation.facts.refs(VM_ID))
    if not reads and not writes:
        return _not_read(situation.aside, path)
    every = situation.pairs.on(path)
    for name, codes in (("read", reads), ("write", writes)):
        if set(codes) != every:
            why = f"OK so far, but {name} was seen on {len(codes)} of {len(every)} ordered pairs"
            return Gate(GATE, path, GateState.UNKNOWN, why, refs)
    why = f"read and write OK on {len(every)} of {len(every)} ordered pairs"
    promised = path is Path.PCIE and situation.aside.in_kvm
    why += "; in a VM a promise, not a measurement" if promised else ""
    return Gate(GATE, path, GateState.PASS, why, refs)


def _not_read(situation: Situation, path: Path) -> Gate:
    """What the CUDA runtime answers rests on the driver's answer, and does not name its code."""
    why = "topo -p2p was not read"
    reached = _reached(situation, path)
    if not reached:
        return Gate(GATE, path, GateState.UNKNOWN, why, (), _expected(situation, path))
    count = sum(reached.values())
    why += f"; the CUDA runtime can reach the peer on {count} of {len(reached)} ordered pairs"
    expected = "OK where the runtime reaches the peer" if count else "refused on every pair"
    return Gate(GATE, path, GateState.UNKNOWN, why, situation.facts.refs(PAIR_MATRICES), expected)


def _reached(situation: Situation, path: Path) -> dict[Pair, bool]:
    """cudaDeviceCanAccessPeer by pair, as CUDA's samples print it."""
    matrix = next((m for m in situation.facts.value(PAIR_MATRICES) or () if m.unit == "access"), None)
    if matrix is None:
        return {}
    on_path = situation.pairs.on(path)
    reachable = {
        (f"GPU{a}", f"GPU{b}"): value > 0
        for a, row in zip(matrix.gpus, matrix.values, strict=False)
        for b, value in zip(matrix.gpus, row, strict=False)
        if a != b and value is not None
    }
    return {pair: can for pair, can in reachable.items() if pair in on_path or not on_path}


def _refused(reads: dict[Pair, P2pCode], writes: dict[Pair, P2pCode]) -> dict[Pair, P2pCode]:
    """The pairs refused for reads or for writes; NCCL needs both."""
    both = {**writes, **{p: c for p, c in reads.items() if c is not P2pCode.OK}}
    return {pair: code for pair, code in both.items() if code is not P2pCode.OK}


def _why(situation: Situation, path: Path, refused: dict[Pair, P2pCode], seen: set[Pair]) -> str:
    total = len(situation.pairs.on(path))
    counts = Counter(refused.values())
    parts = [
        f"{code} on {count} of {len(seen)} ordered pairs: {meaning(situation, path, code)}"
        for code, count in counts.most_common()
    ]
    cut = f" ({len(seen)} of {total} pairs were read)" if len(seen) < total else ""
    return "; ".join(parts) + cut


def meaning(situation: Situation, path: Path, code: P2pCode) -> str:
    """What a code says on this ground and path."""
    if code is not P2pCode.NS or path is not Path.PCIE:
        return MEANING[code]
    if situation.in_kvm:
        return MEANING[code] if situation.kvm_hidden else _NS_IN_KVM
    return MEANING[code] + (_NOT_GRANTED if situation.outside_kvm in HYPERVISORS else "")


def _expected(situation: Situation, path: Path) -> str | None:
    if path is Path.PCIE and situation.in_kvm:
        return "NS on every pair unless the VM’s GPUs carry a clique (p2p_caps.c)"
    return None


rung = Rung(
    GATE,
    judge,
    place=4,
    outlives_changes=True,  # the driver’s answer is the newest by itself
    decided_by=("p2p_matrix",),
)
