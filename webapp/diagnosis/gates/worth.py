"""Is it worth it: the workload measured with and without P2P, more than one run each.

One run an arm tells nothing: two arms differ only when the slowest run of one is faster than the fastest of
the other, which for three runs each happens by chance in 1 of 20 cases a side.

Source: exact rank-sum test, three runs against three (Wilcoxon, 1945).
"""

from typing import Any

from agents.facts import Fact, ReadingKind
from agents.facts.bench import SERVING
from agents.facts.nccl import NCCL_TRANSPORTS
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.dedupe import distinct_runs
from webapp.diagnosis.situation.own_machine import unnamed_cards

GATE = "worth"
RUNS = 3

Arm = dict[int, list[float]]


def judge(situation: Situation, path: Path) -> Gate:
    facts = situation.facts
    off, on = _arm(facts, p2p=False), _arm(facts, p2p=True)
    shared = sorted(set(off) & set(on))
    if not shared:
        return Gate(GATE, path, GateState.UNKNOWN, "the workload was not measured both with and without P2P")
    refs = _refs(facts)
    short = [c for c in shared if min(len(off[c]), len(on[c])) < RUNS]
    if short:
        why = f"fewer than {RUNS} runs an arm at concurrency {short[0]}: cannot tell"
        return Gate(GATE, path, GateState.UNKNOWN, why, refs)
    gains = [c for c in shared if min(on[c]) > max(off[c])]
    losses = [c for c in shared if max(on[c]) < min(off[c])]
    if gains and not losses:
        why = f"faster with P2P in every run at concurrency {_list(gains)}{unnamed_cards(facts, SERVING)}"
        return Gate(GATE, path, GateState.PASS, why, refs)
    if losses:
        why = f"slower with P2P in every run at concurrency {_list(losses)}{unnamed_cards(facts, SERVING)}"
        return Gate(GATE, path, GateState.FAIL, why, refs)
    why = f"no gain beyond the spread of the runs at concurrency {_list(shared)}"
    return Gate(GATE, path, GateState.FAIL, why, refs)


def _arm(facts: Facts, *, p2p: bool) -> Arm:
    """Output tokens a second by concurrency, from epochs whose NCCL log shows this arm."""
    epochs = {s.epoch for s in _known(facts, NCCL_TRANSPORTS) if _shows_p2p(s) is p2p}
    rates: Arm = {}
    for item in distinct_runs(_known(facts, SERVING)):
        for row in item.reading.value or () if item.epoch in epochs else ():
            if row.concurrency and row.output_tokens_per_s:
                rates.setdefault(row.concurrency, []).append(row.output_tokens_per_s)
    return rates


def _shows_p2p(item: Sourced) -> bool | None:
    seen = item.reading.value
    if seen is None or not (seen.p2p or seen.shm or seen.net):
        return None
    return bool(seen.p2p and not seen.shm and not seen.net)


def _known(facts: Facts, fact: Fact[Any]) -> list[Sourced]:
    return [s for s in facts.all(fact) if s.reading.kind is ReadingKind.KNOWN]


def _refs(facts: Facts) -> tuple[EvidenceRef, ...]:
    return tuple(ref for item in _known(facts, SERVING) for ref in item.refs[:1])


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


rung = Rung(
    GATE,
    judge,
    place=8,
    outlives_changes=True,  # an A/B spans a change
    decided_by=("a_b",),
)
