"""What a rung of the ladder is: a question on the way to a gain from P2P, judged on each path."""

from collections.abc import Callable
from dataclasses import dataclass

from webapp.diagnosis.case import Gate, Path
from webapp.diagnosis.situation import Situation


@dataclass(frozen=True, slots=True)
class Rung:
    """One file of webapp/diagnosis/gates holds one, named `rung`. id: its gate's, the file's name.

    place: of the ladder, the lowest first; no two are equal.
    headline: the answer where it fails and the driver's own answer is not known; "" where that says nothing.
    outlives_changes: what was judged before a change that turned the driver's answer still holds.
    decided_by: ids of the tests (`next_test.CANDIDATES`) that could settle it while it is unknown.
    """

    id: str
    judge: Callable[[Situation, Path], Gate]
    place: int
    headline: str = ""
    outlives_changes: bool = False
    decided_by: tuple[str, ...] = ()
