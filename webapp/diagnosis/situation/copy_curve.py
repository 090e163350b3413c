"""The time of one copy between two GPUs against its size, from what was measured here."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice

from agents.facts import ReadingKind
from agents.facts.bench import COPY, CopyPath, CopyResult, CopyRow, Timing
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation.copy_fit import CopyFit, copy_fit

# Below this a copy is still rising towards its plateau (4 MiB reads 80 % of 16 MiB on Gen5 x16).
PLATEAU_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class CopyCurve:
    """points: (bytes, µs), the best measured copy of each size, sizes rising.

    device_timed: the GPU's own time; else a host-synchronised call, which reads longer.
    """

    points: tuple[tuple[int, float], ...]
    device_timed: bool
    evidence: tuple[EvidenceRef, ...] = ()

    @property
    def smallest_us(self) -> float:
        return min(time for _, time in self.points)

    @property
    def plateau_gb_per_s(self) -> float | None:
        """The best measured bandwidth from 16 MiB on; None when no such copy was measured."""
        large = [size / time / 1e3 for size, time in self.points if size >= PLATEAU_BYTES]
        return max(large, default=None)

    @property
    def fit(self) -> CopyFit | None:
        """Latency, bandwidth and the knee between them; None where too few sizes were measured."""
        return copy_fit(self.points)

    def time_us(self, size_bytes: float) -> float | None:
        return time_at(self.points, size_bytes)


def time_at(points: tuple[tuple[int, float], ...], size_bytes: float) -> float | None:
    """µs, interpolated between the neighbours on log axes; None above the largest size. Below the
    smallest size a transfer takes as long as the smallest."""
    sizes = [size for size, _ in points]
    if not points or size_bytes > sizes[-1]:
        return None
    i = bisect_left(sizes, size_bytes)
    right_us = points[i][1]
    if i == 0 or sizes[i] == size_bytes:
        return right_us
    left, left_us = points[i - 1]
    share = math.log(size_bytes / left) / math.log(sizes[i] / left)
    return math.exp(math.log(left_us) * (1 - share) + math.log(right_us) * share)


def copy_curve(facts: Facts) -> CopyCurve | None:
    """The peer copies of the newest epoch that has any; device-timed ones before any others."""
    known = [s for s in facts.all(COPY) if s.reading.kind is ReadingKind.KNOWN]
    newest = [s for s in known if s.epoch == known[0].epoch]
    rows = [row for s in newest for row in _rows(s) if _is_peer(row)]
    timed = [row for row in rows if row.timing is Timing.DEVICE]
    chosen = timed or rows
    if not chosen:
        return None
    best: dict[int, float] = {}
    for row in chosen:
        best[row.size_bytes] = min(row.time_us, best.get(row.size_bytes, math.inf))
    return CopyCurve(tuple(sorted(best.items())), bool(timed), _refs(newest, chosen))


def _rows(item: Sourced) -> tuple[CopyRow, ...]:
    result: CopyResult | None = item.reading.value
    return result.rows if result else ()


def _is_peer(row: CopyRow) -> bool:
    return row.path is CopyPath.PEER and row.size_bytes > 0 and row.time_us > 0


def _refs(items: list[Sourced], chosen: list[CopyRow]) -> tuple[EvidenceRef, ...]:
    """The lines of the first six chosen rows."""
    chosen_ids = {id(row) for row in chosen}
    refs = (EvidenceRef(item.source, row.line or 1) for item in items for row in _rows(item) if id(row) in chosen_ids)
    return tuple(islice(refs, 6))
