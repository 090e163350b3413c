"""How far Peerpath's own predictions can be believed: how many of those that were decided held."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from webapp.diagnosis.claim import Basis
from webapp.diagnosis.compare.predictions import Score, Verdict


@dataclass(frozen=True, slots=True)
class Calibration:
    """Predictions of one kind on one basis."""

    what: str
    basis: Basis
    held: int
    missed: int
    undecided: int

    @property
    def decided(self) -> int:
        return self.held + self.missed

    @property
    def rate(self) -> tuple[float, float] | None:
        """95 % interval of the share that holds; None while nothing was decided."""
        return wilson(self.held, self.decided) if self.decided else None


def calibrated(scores: Iterable[Score]) -> tuple[Calibration, ...]:
    """Scores by kind, then by basis, the strongest basis first."""
    counts = Counter((score.what, score.basis, score.verdict) for score in scores)
    order = list(Basis)
    kinds = sorted({(what, basis) for what, basis, _ in counts}, key=lambda k: (k[0], order.index(k[1])))
    return tuple(
        Calibration(what, basis, *(counts[what, basis, verdict] for verdict in Verdict)) for what, basis in kinds
    )


def wilson(hits: int, of: int) -> tuple[float, float]:
    """95 % interval of a rate (Wilson 1927, Journal of the American Statistical Association 22)."""
    z, p = 1.96, hits / of
    middle, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + (z / (2 * of)) ** 2)
    scale = 1 + z * z / of
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)
