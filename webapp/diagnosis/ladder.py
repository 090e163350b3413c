"""The ladder: eight gates between two GPUs and a gain from P2P, judged on each path."""

from __future__ import annotations

from collections.abc import Callable

from agents.facts.gpu import FABRIC, GPU_COUNT_SMI, GPUS
from agents.facts.p2p import P2P_NVLINK, TOPOLOGY
from agents.facts.workload import PARALLELISM
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.gates import (
    collective,
    delivered,
    driver,
    fabric,
    granted,
    mapped,
    used,
    worth,
)
from webapp.diagnosis.pairs import gpu_count, has_nvlink, pairs

Judge = Callable[[Facts, Path], Gate]

GATES: dict[str, Judge] = {
    module.GATE: module.judge
    for module in (fabric, mapped, granted, driver, delivered, collective, used, worth)
}


def judge_ladder(facts: Facts) -> tuple[Gate, ...]:
    """Every gate, NVLink's first where there is NVLink, then PCIe's, in order of the ladder."""
    paths = [Path.NVLINK, Path.PCIE] if has_nvlink(facts) else [Path.PCIE]
    return tuple(gate for path in paths for gate in _on_path(facts, path))


def _on_path(facts: Facts, path: Path) -> list[Gate]:
    reason, refs = _not_applicable(facts, path)
    if reason:
        return [Gate(name, path, GateState.NOT_APPLICABLE, reason, refs) for name in GATES]
    return [judge(facts, path) for judge in GATES.values()]


def _not_applicable(facts: Facts, path: Path) -> tuple[str, tuple[EvidenceRef, ...]]:
    parallelism = facts.value(PARALLELISM)
    if gpu_count(facts) == 1:
        return "there is one GPU", facts.refs(GPUS) or facts.refs(GPU_COUNT_SMI)
    if parallelism and parallelism.tp == 1:
        return "tensor parallel 1: no collective between GPUs", facts.refs(PARALLELISM)
    if path is Path.PCIE and has_nvlink(facts) and not pairs(facts).pcie:
        refs = facts.refs(TOPOLOGY) or facts.refs(P2P_NVLINK) or facts.refs(FABRIC)
        return "every pair is joined by NVLink", refs
    return "", ()
