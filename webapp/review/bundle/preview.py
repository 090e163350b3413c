"""What a redacted bundle or report hides, told before it is taken away: counted in what leaves itself."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from agents.redaction import kind_of
from webapp.records.models import DiagnosisSession, Evidence
from webapp.records.parse_process import LARGE_BYTES
from webapp.review.bundle import format as f
from webapp.review.bundle.export import Output, outputs_of
from webapp.review.bundle.redacted import PERSON, Shared, shared

# 0.5 to 1.5 MB are redacted a second and each text twice, measured on two busy cores: so much is counted
# at once, and what is longer only when it is asked for.
MOST_BYTES, MOST_OUTPUTS = LARGE_BYTES, 100
MOST_WORDS, MOST_ROWS, MOST_LINES = 8, 100, 50
SHOWN_ELSEWHERE = "credential"  # a password is seen in its output, on purpose, or not at all


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind. places: in `outputs` outputs, and in the session's own texts if `own`. words: what stands
    in the place of secrets -> the secret, "" for one that is not shown; more: how many are left out."""

    kind: str
    places: int
    outputs: int
    own: bool
    words: tuple[tuple[str, str], ...]
    more: int


@dataclass(frozen=True, slots=True)
class Row:
    """One output with something to hide. lines: of what it printed, as its page marks them."""

    evidence: Evidence
    kinds: tuple[tuple[str, int], ...]
    lines: str
    errors: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """counted: of `total` outputs, in order; others: those counted that hide nothing, or are not listed.
    own: kinds in the session's own texts; before: those hidden before it came here."""

    rules: tuple[Rule, ...]
    rows: tuple[Row, ...]
    own: tuple[tuple[str, int], ...]
    before: tuple[tuple[str, int], ...]
    counted: int
    total: int
    unlisted: int
    silent: int

    @property
    def whole(self) -> bool:
        return self.counted == self.total


def preview(session: DiagnosisSession, *, everything: bool) -> Preview:
    """everything: all outputs, however long that takes; else what takes about a second. Raises
    RedactionError and LostError."""
    outputs = outputs_of(session)
    counted = outputs if everything else outputs[: _at_once(o.size_bytes for o in outputs)]
    made = shared(session, counted)
    rows = _rows(made.report, counted)
    return Preview(
        rules=_rules(made),
        rows=tuple(rows[:MOST_ROWS]),
        own=_kinds(one for one in made.report if one.evidence is None),
        before=_kinds(made.before),
        counted=len(counted),
        total=len(outputs),
        unlisted=len(rows[MOST_ROWS:]),
        silent=len(counted) - len(rows),
    )


def _at_once(sizes: Iterable[int]) -> int:
    """How many of the first outputs are read without a wait."""
    return sum(total <= MOST_BYTES for total in islice(accumulate(sizes), MOST_OUTPUTS))


def _rules(made: Shared) -> tuple[Rule, ...]:
    words: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for secret, word in made.stands_for:
        kind = kind_of(word) or PERSON
        words[kind].append((word, "" if kind == SHOWN_ELSEWHERE else secret))
    return tuple(
        Rule(
            kind,
            places,
            len({one.evidence for one in made.report if one.kind == kind} - {None}),
            any(one.kind == kind and one.evidence is None for one in made.report),
            tuple(words[kind][:MOST_WORDS]),
            len(words[kind][MOST_WORDS:]),
        )
        for kind, places in _kinds(made.report)
    )


def _kinds(report: Iterable[f.Hidden]) -> tuple[tuple[str, int], ...]:
    """Most first."""
    counts: Counter[str] = Counter()
    for one in report:
        counts[one.kind] += one.count
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _rows(report: Iterable[f.Hidden], outputs: Sequence[Output]) -> list[Row]:
    """Most first."""
    hidden: dict[int, list[f.Hidden]] = defaultdict(list)
    for one in report:
        if one.evidence is not None:
            hidden[one.evidence].append(one)
    rows = [_row(outputs[number].evidence, here) for number, here in hidden.items()]
    return sorted(rows, key=lambda row: -sum(count for _, count in row.kinds))


def _row(evidence: Evidence, here: list[f.Hidden]) -> Row:
    lines = sorted({line for one in here if not one.stream for line in one.lines})[:MOST_LINES]
    errors = any(one.stream for one in here)
    return Row(evidence, _kinds(here), ",".join(map(str, lines)), errors)
