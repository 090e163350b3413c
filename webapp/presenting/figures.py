"""Numbers turned into drawing coordinates. SVG attributes only: inline styles are forbidden."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.facts.bench import Profile
from webapp.diagnosis.case import Bound, Gate, Path
from webapp.diagnosis.claim import Range
from webapp.diagnosis.wording import span

BAR_WIDTH = 100.0


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of the time bar. x, width: percent of the bar. kind: floor, comm, attention, moe, other,
    gaps, each with "-maybe" for what a range holds above its low end; unexplained.

    text: what fits into it, "" when nothing does.
    """

    kind: str
    x: float
    width: float
    text: str
    title: str

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


# The parts of a profile, in the bar's order: its key, the colour's class, and what it is called.
PARTS = (
    ("nccl", "comm", "NCCL"),
    ("attention", "attention", "attention"),
    ("moe", "moe", "experts"),
    ("other", "other", "other kernels"),
    ("gaps", "gaps", "gaps"),
)
Piece = tuple[str, str, Range | None]


def time_bar(bound: Bound) -> tuple[Segment, ...]:
    """Floor and communication solid to their low ends and hatched to their high ends, the rest
    unexplained. With a profile of this step its parts instead, and what it does not hold unexplained."""
    if bound.step_ms is None:
        return ()
    step = sum(bound.step_ms) / 2
    if bound.profiled_ms:
        pieces: list[Piece] = [(k, label, bound.profiled_ms.get(n)) for n, k, label in PARTS]
    else:
        pieces = [("floor", "weight reads", bound.floor_ms), ("comm", "communication", bound.comm_ms)]
    segments = _laid_segments(pieces, step)
    label, text = "unexplained", span(bound.unexplained_ms) if bound.unexplained_ms else "?"
    x = sum(segment.width for segment in segments)
    width = BAR_WIDTH - x
    if width > 0 and not (bound.profiled_ms and width < 0.5):
        fits = _fitting_label(width, label, f"{text} ms")
        segments.append(Segment("unexplained", x, width, fits, f"{label} {text} ms"))
    return tuple(segments)


def profile_bar(profile: Profile) -> tuple[Segment, ...]:
    """The parts of a profiled step, which are all of it."""
    ms = {name: getattr(profile, f"{name}_ms") for name, _, _ in PARTS}
    pieces: list[Piece] = [(kind, label, (ms[n], ms[n])) for n, kind, label in PARTS]
    return tuple(_laid_segments(pieces, profile.step_ms))


def _laid_segments(pieces: Sequence[Piece], step_ms: float) -> list[Segment]:
    """Side by side at their high ends, cut where the step is full; a range in two, since only its low end
    is certain."""
    segments: list[Segment] = []
    x = 0.0
    for kind, label, value in pieces:
        if not value or step_ms <= 0:
            continue
        for end, drawn in enumerate((value[0], value[1] - value[0])):
            width = min(BAR_WIDTH - x, BAR_WIDTH * drawn / step_ms)
            if width > 0:
                segments.append(_segment(kind, label, value, x, width, maybe=end == 1))
                x += width
    return segments


def _segment(kind: str, label: str, value: Range, x: float, width: float, *, maybe: bool) -> Segment:
    """The certain part of a range, or what may come on top."""
    text = span(value)
    if maybe:
        return Segment(f"{kind}-maybe", x, width, _fitting_label(width, label, text), f"up to {text} ms")
    title = f"{label} {text} ms" if value[0] == value[1] else f"{label} at least {span((value[0],) * 2)} ms"
    return Segment(kind, x, width, _fitting_label(width, label, text), title)


def _fitting_label(width: float, label: str, text: str) -> str:
    per_letter = 1.05  # percent of a bar as wide as the page has room for at 1440 px
    for candidate in (f"{label} {text}", text):
        if len(candidate) * per_letter < width:
            return candidate
    return ""


def ladder_rows(ladder: Sequence[Gate]) -> list[tuple[Path, list[Gate]]]:
    """The gates by path, in ladder order; a path is left out when there is nothing to say on it."""
    rows = []
    for path in Path:
        gates = [gate for gate in ladder if gate.path is path]
        if gates:
            rows.append((path, gates))
    return rows
