"""The ladder: eight gates between two GPUs and a gain from P2P, judged on each path."""

from dataclasses import replace

from agents.facts.gpu import FABRIC
from agents.facts.p2p import P2P_NVLINK, P2P_READ, TOPOLOGY
from agents.facts.workload import PARALLELISM
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.catalogue import all_rungs
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation

_JUDGED = frozenset({GateState.PASS, GateState.FAIL})


def judge_ladder(situation: Situation) -> tuple[Gate, ...]:
    """Every gate, NVLink's first where there is NVLink, then PCIe's, in order of the ladder."""
    return tuple(_gate(situation.scope(), rung, path) for path in situation.paths for rung in all_rungs())


def _gate(situation: Situation, rung: Rung, path: Path) -> Gate:
    facts = situation.facts
    not_applicable = situation.exception(lambda situation: _not_applicable(situation, path))
    if not_applicable:
        gate = Gate(rung.id, path, GateState.NOT_APPLICABLE, *not_applicable)
    else:
        gate = rung.judge(situation, path)
        gate = facts.exception(lambda facts: _if_stale(facts, rung, gate)) or gate
    return replace(gate, reads=facts.reads)


def _if_stale(facts: Facts, rung: Rung, gate: Gate) -> Gate | None:
    """A verdict from before a change that turned the driver's answer is none any more."""
    now = facts.best(P2P_READ)
    if rung.outlives_changes or gate.state not in _JUDGED or now is None:
        return None
    epochs = {s.source: s.epoch for group in facts.readings.values() for s in group}
    judged_at = max((epochs.get(ref.source, now.epoch) for ref in gate.evidence), default=now.epoch)
    then = next((s for s in facts.all(P2P_READ) if s.epoch <= judged_at), None)
    if judged_at >= now.epoch or then is None or then.reading.value == now.reading.value:
        return None
    why = f"not looked at since the driver’s answer changed; before: {gate.why}"
    return replace(gate, state=GateState.UNKNOWN, why=why)


def _not_applicable(situation: Situation, path: Path) -> tuple[str, tuple[EvidenceRef, ...]] | None:
    facts = situation.facts
    count = situation.exception(lambda situation: situation.gpu_count in {0, 1}) and situation.gpu_count
    if count is not False:
        return f"there is {'one' if count else 'no'} GPU", situation.gpu_count_refs
    if facts.value(PARALLELISM, where=lambda parallelism: parallelism.tp == 1):
        return "tensor parallel 1: no collective between GPUs", facts.refs(PARALLELISM)
    if path is Path.PCIE and situation.has_nvlink and not situation.pairs.pcie:
        return "every pair is joined by NVLink", facts.refs(TOPOLOGY) or facts.refs(P2P_NVLINK) or facts.refs(FABRIC)
    return None
