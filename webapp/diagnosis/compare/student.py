"""Student's t for whole degrees of freedom, and Holm's way to ask several questions at once.

Sources: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4; Holm 1979, Scandinavian Journal of Statistics 6.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

FAR = 1e6


def two_sided(t: float, freedom: int) -> float:
    """Probability of a |t| at least this large by chance. freedom: from 1."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if odd:
        inside = 2 / math.pi * (angle + (math.sin(angle) * total if freedom > 1 else 0.0))
    else:
        inside = math.sin(angle) * total
    return min(1.0, max(0.0, 1.0 - inside))


@cache
def reach(outside: float, freedom: int) -> float:
    """The |t| that chance exceeds with probability `outside`, above 0 and up to 1."""
    low, high = 0.0, FAR
    for _ in range(100):
        middle = (low + high) / 2
        if two_sided(middle, freedom) > outside:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True, slots=True)
class Answer:
    """differs: beyond chance, all questions together. outside: the level this one was asked at, so that an
    interval of 1 - outside excludes no difference exactly where `differs`."""

    differs: bool
    outside: float


def holm(chances: Sequence[float], alpha: float) -> tuple[Answer, ...]:
    """In the order given: at most `alpha` to call any of them different when none is."""
    order = sorted(range(len(chances)), key=lambda i: chances[i])
    answers = [Answer(False, alpha)] * len(chances)
    outside, stopped = alpha, False
    for rank, i in enumerate(order):
        if not stopped:
            outside = alpha / (len(chances) - rank)
            stopped = chances[i] > outside
        answers[i] = Answer(not stopped, outside)
    return tuple(answers)
