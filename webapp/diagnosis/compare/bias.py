"""Our figures beside the reference tools' of the same machine: how far our way of measuring is off.

Only like is compared, since the same change. All-reduces: in place, inside a CUDA graph, over as many ranks,
with the same P2P setting; nccl-tests times on the host, so its shorter runs read a little longer on small
sizes. Large copies: the same pair with the same peer access, both on their plateau; ours end at 16 or 64 MiB,
theirs are of 40 MB (p2pBandwidthLatencyTest) and 512 MiB (nvbandwidth), which reads a little faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents.facts import ReadingKind
from agents.facts.bench import ALLREDUCE, COPY, PAIR_MATRICES, AllReduceResult, CopyPath, CopyRow, PairMatrix, Timing
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation.copy_curve import PLATEAU_BYTES

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
    """Rows by arm and size; the newest run of each side counts. Empty unless both sides were run."""
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


def _our_arm(result: AllReduceResult) -> str | None:
    return _OUR_ARMS.get(result.environment.get("arm", ""))


def _their_arm(result: AllReduceResult) -> str:
    return WITHOUT if result.p2p is False else AS_CHOSEN


def _times(result: AllReduceResult, *, is_ours: bool) -> dict[Key, float]:
    arm = _our_arm(result) if is_ours else _their_arm(result)
    if arm is None:
        return {}
    return {
        (arm, row.ranks, row.size_bytes): row.time_us
        for row in result.rows
        if row.graph and row.in_place and row.time_us > 0 and not row.unstable
    }


@dataclass(frozen=True, slots=True)
class CopyBias:
    """One ordered pair. title: what the other tool calls its test. ratio: ours ÷ theirs, 1 is none."""

    title: str
    source: str
    destination: str
    peer_access: bool
    size_bytes: int
    ours_gb_per_s: float
    theirs_gb_per_s: float
    evidence: tuple[EvidenceRef, ...]

    @property
    def ratio(self) -> float:
        return self.ours_gb_per_s / self.theirs_gb_per_s


PairKey = tuple[str, str, bool]


def copy_bias(facts: Facts) -> tuple[CopyBias, ...]:
    """Rows by pair, from our newest copies; empty unless both sides were run."""
    copies, matrices = facts.best(COPY), facts.best(PAIR_MATRICES)
    result, theirs = facts.value(COPY), facts.value(PAIR_MATRICES)
    if copies is None or matrices is None or result is None or theirs is None:
        return ()
    if copies.epoch != matrices.epoch or "payload_sha256" not in result.environment:
        return ()
    ours = _plateaus(result.rows)
    refs = copies.refs[:1] + matrices.refs[:1]
    return tuple(
        CopyBias(matrix.title, *key, row.size_bytes, row.size_bytes / row.time_us / 1e3, rate, refs)
        for matrix in theirs
        for key, rate in _rates(matrix)
        if (row := ours.get(key))
    )


def _plateaus(rows: tuple[CopyRow, ...]) -> dict[PairKey, CopyRow]:
    """The largest copy of each pair, where it has reached its plateau."""
    largest: dict[PairKey, CopyRow] = {}
    for row in rows:
        large = row.timing is Timing.DEVICE and row.size_bytes >= PLATEAU_BYTES
        if row.path is CopyPath.PEER and row.peer_access is not None and large and not row.unstable:
            key = (row.source, row.destination, row.peer_access)
            largest[key] = max(largest.get(key, row), row, key=lambda r: r.size_bytes)
    return largest


def _rates(matrix: PairMatrix) -> Iterator[tuple[PairKey, float]]:
    """One-way copies by the copy engine. The sender is the row, but for nvbandwidth's read test, in which
    the row reads from the column: so testcases_ce.cpp copies, though the arrows that nvbandwidth prints
    point the other way."""
    reads = matrix.title == "device_to_device_memcpy_read_ce"
    written = reads or matrix.title == "device_to_device_memcpy_write_ce"
    if matrix.unit != "GB/s" or not (written or matrix.title.startswith("Unidirectional P2P=")):
        return
    access = True if written else bool(matrix.p2p)
    for row, values in zip(matrix.gpus, matrix.values, strict=False):
        for column, rate in zip(matrix.gpus, values, strict=False):
            if rate and row != column:
                yield ((column, row, access) if reads else (row, column, access)), rate
