"""Our all-reduce times beside nccl-tests' of the same machine: how far our way of measuring is off.

Only like is compared: in place, inside a CUDA graph, over as many ranks, with the same P2P setting, since the
same change. nccl-tests times on the host, so its shorter runs read a little longer on small sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.facts import ReadingKind
from agents.facts.bench import ALLREDUCE, AllReduceResult
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts, Sourced

WITHOUT, AS_CHOSEN = "without P2P", "as NCCL chooses"
_OUR_ARMS = {"no_p2p": WITHOUT, "default": AS_CHOSEN}

Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Bias:
    """One size in one arm. ratio: ours ÷ theirs, 1 is none."""

    arm: str
    ranks: int
    size_bytes: int
    ours_us: float
    theirs_us: float
    evidence: tuple[EvidenceRef, ...]

    @property
    def ratio(self) -> float:
        return self.ours_us / self.theirs_us


def all_reduce_bias(facts: Facts) -> tuple[Bias, ...]:
    """By arm and size; the newest run of each side counts. Empty unless both were run."""
    ours: dict[Key, tuple[float, Sourced]] = {}
    theirs: dict[Key, tuple[float, Sourced]] = {}
    for item in facts.all(ALLREDUCE):
        result = item.reading.value
        known = item.reading.kind is ReadingKind.KNOWN
        if not known or result is None or item.epoch != facts.newest_epoch:
            continue
        is_ours = "payload_sha256" in result.environment
        for key, time_us in _times(result, is_ours=is_ours).items():
            (ours if is_ours else theirs).setdefault(key, (time_us, item))
    return tuple(
        Bias(*key, ours[key][0], theirs[key][0], ours[key][1].refs[:1] + theirs[key][1].refs[:1])
        for key in sorted(ours.keys() & theirs.keys())
    )


def _times(result: AllReduceResult, *, is_ours: bool) -> dict[Key, float]:
    if is_ours:
        arm = _OUR_ARMS.get(result.environment.get("arm", ""))
    else:
        arm = WITHOUT if result.p2p is False else AS_CHOSEN
    if arm is None:
        return {}
    return {
        (arm, row.ranks, row.size_bytes): row.time_us
        for row in result.rows
        if row.graph and row.in_place and row.time_us > 0 and not row.unstable
    }
