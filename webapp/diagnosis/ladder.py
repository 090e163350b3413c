"""The ladder: eight gates between two GPUs and a gain from P2P, judged on each path."""

from __future__ import annotations

from dataclasses import replace

from agents.facts.gpu import FABRIC
from agents.facts.p2p import P2P_NVLINK, P2P_READ, TOPOLOGY
from agents.facts.workload import PARALLELISM
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.catalogue import all_rungs
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.pairs import gpu_count, gpu_count_refs, has_nvlink, pairs
from webapp.diagnosis.rung import Rung

_JUDGED = frozenset({GateState.PASS, GateState.FAIL})


def judge_ladder(facts: Facts) -> tuple[Gate, ...]:
    """Every gate, NVLink's first where there is NVLink, then PCIe's, in order of the ladder."""
    paths = [Path.NVLINK, Path.PCIE] if has_nvlink(facts) else [Path.PCIE]
    return tuple(gate for path in paths for gate in _on_path(facts, path))


def _on_path(facts: Facts, path: Path) -> list[Gate]:
    reason, refs = _not_applicable(facts, path)
    if reason:
        return [Gate(rung.id, path, GateState.NOT_APPLICABLE, reason, refs) for rung in all_rungs()]
    return [_unless_stale(facts, rung, rung.judge(facts, path)) for rung in all_rungs()]


def _unless_stale(facts: Facts, rung: Rung, gate: Gate) -> Gate:
    """A verdict from before a change that turned the driver's answer is none any more."""
    now = facts.best(P2P_READ)
    if rung.outlives_changes or gate.state not in _JUDGED or now is None:
        return gate
    epochs = {s.source: s.epoch for found in facts.readings.values() for s in found}
    taken = max((epochs.get(ref.source, now.epoch) for ref in gate.evidence), default=now.epoch)
    then = next((s for s in facts.all(P2P_READ) if s.epoch <= taken), None)
    if taken >= now.epoch or then is None or then.reading.value == now.reading.value:
        return gate
    why = f"not looked at since the driver’s answer changed; before: {gate.why}"
    return replace(gate, state=GateState.UNKNOWN, why=why)


def _not_applicable(facts: Facts, path: Path) -> tuple[str, tuple[EvidenceRef, ...]]:
    parallelism = facts.value(PARALLELISM)
    count = gpu_count(facts)
    if count in {0, 1}:
        return f"there is {'one' if count else 'no'} GPU", gpu_count_refs(facts)
    if parallelism and parallelism.tp == 1:
        return "tensor parallel 1: no collective between GPUs", facts.refs(PARALLELISM)
    if path is Path.PCIE and has_nvlink(facts) and not pairs(facts).pcie:
        refs = facts.refs(TOPOLOGY) or facts.refs(P2P_NVLINK) or facts.refs(FABRIC)
        return "every pair is joined by NVLink", refs
    return "", ()
