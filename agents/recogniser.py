"""Which probe or benchmark does this pasted text answer?

A typed command line (after a prompt, in a heading, or alone) opens a part surely, else a line that
such output starts with does. Lines continue a part while they belong to it. A part counts only when
its reader's own parser gets something out of it; the rest is reported as unrecognised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agents import ownership
from agents.facts.fact import ReadingKind, View
from agents.parsing import terminal
from agents.parsing.terminal import Kind, Line
from agents.probe import Output, Readings
from agents.readers import Reader, all_readers, by_id, by_name, hinted
from agents.recognition import Part, Recognition
from agents.role_words import role_of_text, role_of_words, says_only

# Output of other lines inside one part (a warning, a cut) that does not end it.
_GAP_LINES = 3
# What the same-looking twins of one role may claim when nothing says which of them it is.
_AMBIGUOUS = 0.6
_ROLE_GUESSED = 0.7
_MOST_FAILURES = 20
_HEAD_LINES = 2000
_HEAD_CHARS = 50_000
_HINTED = 0.9
# Surely this kind of output, though nothing in it answers a question (a log without its events).
_SILENT = 0.5
_SURE_START = 0.8
_TYPED = frozenset({Kind.COMMAND, Kind.PROMPT})
_BETWEEN = frozenset({Kind.BLANK, Kind.PAGER})


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A reader that may claim lines [first, last) (0-based)."""

    reader: Reader
    first: int
    last: int
    confidence: float


def recognise(text: str, role: View | None = None, hint: str = "") -> Recognition:
    """The parts of a paste in their order. hint: a probe id or the file's name."""
    return _Recogniser(text, role, hint).run()


class _Recogniser:
    def __init__(self, text: str, role: View | None, hint: str) -> None:
        self.raw = text.split("\n")
        self.lines = terminal.read(self.raw)
        self.hint = hint
        self.role = role or role_of_words(hint)
        self.owners = ownership.owners(self.raw, self.lines)
        self.failed_until: dict[str, int] = {}  # so that a failing reader is not tried on each line
        self.failures: Counter[str] = Counter()
        self.placed: set[int] = set()
        self.parsed: dict[tuple[_Candidate, int | None], Readings] = {}
        self.parts: list[Part] = []

    def run(self) -> Recognition:
        position = 0
        while position < len(self.lines):
            parts = self._place_typed(position) or self._place_started(position)
            parts += self._parts_between(parts)
            self.parts += parts
            position = max([position, *(part.last - 1 for part in parts)]) + 1
        if named := by_name(self.hint):
            self._place_whole(named)
        return Recognition(tuple(self.parts), tuple(self._unrecognised_ranges()))

    def _place_typed(self, position: int) -> list[Part]:
        """Every reader that the command answers gets the output: one command may tell two facts."""
        line = self.lines[position]
        if line.kind is not Kind.COMMAND:
            return []
        readers = [r for r in all_readers() if r.is_typed(line.command) and self._may_speak(r)]
        if not readers:
            return []
        self.placed.add(position)
        candidates = [c for c in (self._typed_candidate(r, position, readers) for r in readers) if c]
        return [self._part(c) for c in self._of_one_role(self._without_other_machines(candidates))]

    def _parts_between(self, parts: list[Part]) -> list[Part]:
        """What other readers get out of lines that stand among these parts' own."""
        taken = {part.reader for part in parts}
        more = [
            _Candidate(reader, part.first - 1, part.last, reader.score)
            for part in parts
            for reader in map(by_id, by_id(part.reader).between)
            if reader.id not in taken
        ]
        facts = {fact for part in parts for fact in _known_facts(part.readings)}
        extra = [self._part(c) for c in more if self._confirm(c, typed=False)]
        return [part for part in extra if part.readings is None or _known_facts(part.readings) - facts]

    def _typed_candidate(self, reader: Reader, position: int, rivals: list[Reader]) -> _Candidate | None:
        last = self._end_of_typed(reader, position + 1, rivals)
        confidence = 1.0 if self.lines[position].prompted else 0.95
        whole = _Candidate(reader, position, last, confidence)
        if self.lines[position].glued or (reader.reads_command and last > position + 1):
            return self._confirm(whole, typed=True)
        below = self._confirm(replace(whole, first=position + 1), typed=True)
        return below or self._confirm(whole, typed=True)

    def _end_of_typed(self, reader: Reader, first: int, rivals: list[Reader]) -> int:
        """Up to the next prompt; earlier where lines that do not belong open another reader's output, or
        stand below a blank line with nothing of this one after them."""
        belonging, left = first, 0  # left: the first blank line below what belongs
        for position in range(first, len(self.lines)):
            line = self.lines[position]
            if line.kind in _TYPED:
                return self._trim_end(first, left or position)
            if line.kind in _BETWEEN:
                left = left or (position if first < belonging else 0)
                continue
            if reader.belongs is not None and reader.is_continued(line):
                belonging, left = position + 1, 0
                continue
            if line.kind is Kind.BREAK:
                if belonging > first:
                    return self._trim_end(first, left or position)
                continue
            after_blank = position > first and self.lines[position - 1].kind is not Kind.TEXT
            may_end = position > first and (reader.belongs is not None or after_blank)
            if may_end and _opens_other(rivals, line):
                return self._trim_end(first, left or position)
            if reader.belongs is None:
                belonging, left = position + 1, 0
        return self._trim_end(first, left or len(self.lines))

    def _place_started(self, position: int) -> list[Part]:
        line = self.lines[position]
        if line.kind in {Kind.BLANK, Kind.PROMPT, Kind.PAGER}:
            return []
        failed = self._failed_readers(position)
        readers = [r for r in Reader.started_by(line, failed) if self._may_speak(r)]
        candidates = [
            _Candidate(
                r,
                self._first_of_started(r, position),
                self._end_of_started(r, position, readers),
                self._score(r, position),
            )
            for r in readers
        ]
        candidates = self._without_other_machines(candidates)
        candidates.sort(key=self._preference, reverse=True)
        for candidate in candidates:
            if winner := self._confirm(candidate, typed=False):
                return [self._part(self._with_doubt(winner, candidates))]
        silent = next((c for c in candidates if self._is_silent(c)), None)
        return [self._part(replace(silent, confidence=_SILENT))] if silent else []

    def _failed_readers(self, position: int) -> set[str]:
        """Readers not to ask here again: they got nothing from lines that reach to this one. Below a
        blank line another output may begin, so there each is asked a few times more."""
        below_blank = position > 0 and self.lines[position - 1].kind is Kind.BLANK
        return {
            name
            for name, until in self.failed_until.items()
            if position < until and not (below_blank and self.failures[name] < _MOST_FAILURES)
        }

    def _is_silent(self, candidate: _Candidate) -> bool:
        """Its reader understood the lines, and says for each fact that they do not tell it."""
        if candidate.reader.score < _SURE_START or candidate.reader.role is None:
            return False
        output = Output(self._text(candidate), "", None, -1)
        return all(r.kind is ReadingKind.NOT_RUN for r in candidate.reader.parse(output))

    def _score(self, reader: Reader, position: int) -> float:
        return max(reader.score, _HINTED) if self._is_hinted(reader, position) else reader.score

    def _is_hinted(self, reader: Reader, first: int) -> bool:
        """By the file's name, or by the words right above, as "Peer access (topo -p2p w)"."""
        return hinted(reader, self.hint) or hinted(reader, ownership.heading(self.lines, first, self.placed))

    def _may_speak(self, reader: Reader) -> bool:
        """Not for one machine about lines that were said to be the other's and could be any's."""
        if self.role is None or reader.role in {None, self.role} or reader.id in self.hint:
            return True
        return not reader.any_machine

    def _without_other_machines(self, candidates: list[_Candidate]) -> list[_Candidate]:
        own = [c for c in candidates if not self._is_other_machines(c)]
        self.failed_until |= {c.reader.id: c.last for c in candidates if c not in own}
        return own

    def _is_other_machines(self, candidate: _Candidate) -> bool:
        """Nobody said whose output it is, any machine could have printed it, and its words, or its prompt
        or heading, are those of the machine that this reader is not for."""
        reader = candidate.reader
        if self.role or reader.role is None or not reader.any_machine:
            return False
        other = View.GUEST if reader.role is View.HOST else View.HOST
        text, owner = self._head(candidate), self.owners[candidate.first]
        by_place = owner.named and owner.role is other and role_of_text(text) is None
        return by_place or says_only(text, other)

    def _first_of_started(self, reader: Reader, position: int) -> int:
        """The line above too, where it is the name of what begins here."""
        if reader.above is None or position == 0 or position - 1 in self.placed:
            return position
        named = self.lines[position - 1]
        # A name may look like a tool's: "nvidia-gpu".
        may_be = named.kind in {Kind.TEXT, Kind.COMMAND} and not named.prompted
        belongs = may_be and any(reader.above.search(form) for form in named.forms)
        return position - 1 if belongs else position

    def _end_of_started(self, reader: Reader, first: int, rivals: list[Reader]) -> int:
        """The line after the last one that belongs; without such a rule, up to the next part."""
        last = first + 1
        gap = 0
        opening = self.lines[first].text
        for position in range(first + 1, len(self.lines)):
            line = self.lines[position]
            if line.kind in _TYPED or gap > _GAP_LINES:
                break
            if line.kind in _BETWEEN:
                continue
            if line.text == opening and self.lines[position - 1].kind is not Kind.TEXT:
                break  # the same output again
            if reader.belongs is not None and (reader.is_continued(line) or reader.is_started(line)):
                last, gap = position + 1, 0
            elif line.kind is Kind.BREAK or _opens_other(rivals, line):
                break
            elif reader.belongs is None:
                last = position + 1
            else:
                gap += 1
        return last

    def _preference(self, candidate: _Candidate) -> tuple[bool, bool, bool, float, int]:
        reader = candidate.reader
        return (
            reader.id in self.hint,
            reader.role in {None, self._role(candidate)},
            self._is_hinted(reader, candidate.first),
            candidate.confidence,
            candidate.last - candidate.first,
        )

    def _role(self, candidate: _Candidate) -> View:
        """Whose output this is: as told, else by the part's own words, else by the whole text's."""
        if self.role:
            return self.role
        own = role_of_text(self._head(candidate))
        return own or self.owners[candidate.first].role or View.GUEST

    def _with_doubt(self, candidate: _Candidate, rivals: list[_Candidate]) -> _Candidate:
        """Less sure when another reader would take the same lines and nothing but habit chose."""
        same = [c for c in rivals if (c.last, c.confidence) == (candidate.last, candidate.confidence)]
        twins = [c for c in same if c.reader.id != candidate.reader.id]
        if self._is_hinted(candidate.reader, candidate.first) or not twins:
            return candidate
        if any(c.reader.role is candidate.reader.role and self._confirm(c, False) for c in twins):
            return replace(candidate, confidence=min(candidate.confidence, _AMBIGUOUS))
        return self._with_role_doubt(candidate)

    def _with_role_doubt(self, candidate: _Candidate) -> _Candidate:
        if self.role or role_of_text(self._head(candidate)) or self.owners[candidate.first].role:
            return candidate
        return replace(candidate, confidence=round(candidate.confidence * _ROLE_GUESSED, 2))

    def _of_one_role(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Guest and host readers answer to the same commands: those of one role are kept."""
        roles = {c.reader.role for c in candidates if c.reader.role}
        if len(roles) < 2:
            return candidates
        wanted = self._role(max(candidates, key=lambda c: c.last - c.first))
        return [self._with_role_doubt(c) for c in candidates if c.reader.role in {None, wanted}]

    def _confirm(self, candidate: _Candidate, typed: bool) -> _Candidate | None:
        """The candidate if its parser gets a known value; after a typed command, a definite no too."""
        text = self._text(candidate)
        if not text.strip():
            return None
        code = 127 if typed and terminal.says_missing(text) else None
        readings = candidate.reader.parse(Output(text, "", code, -1))
        kinds = {r.kind for r in readings}
        definite = typed and kinds & {ReadingKind.ABSENT, ReadingKind.UNSUPPORTED}
        if ReadingKind.KNOWN in kinds or definite:
            self.parsed[replace(candidate, confidence=0.0), code] = readings
            return candidate
        if not typed:
            self.failed_until[candidate.reader.id] = candidate.last
            self.failures[candidate.reader.id] += 1
        return None

    def _place_whole(self, reader: Reader) -> None:
        """A file named after its reader: taken whole when its parts say nothing of that reader."""
        if any(part.reader == reader.id for part in self.parts):
            return
        candidate = _Candidate(reader, 0, self._trim_end(0, len(self.lines)), reader.score)
        if whole := self._confirm(candidate, typed=True):
            self.parts = [p for p in self.parts if p.confidence > whole.confidence]
            self.parts.append(self._part(whole))
            self.parts.sort(key=lambda part: part.first)

    def _part(self, candidate: _Candidate) -> Part:
        self.placed.update(range(candidate.first, candidate.last))
        text = self._text(candidate)
        code = 127 if terminal.says_missing(text) else None
        cut = self._is_cut(candidate)
        parsed = None if cut else self.parsed.get((replace(candidate, confidence=0.0), code))
        return Part(
            candidate.first + 1,
            candidate.last,
            candidate.reader.id,
            candidate.confidence,
            text,
            code,
            cut,
            parsed,
            self._is_unsure(candidate),
        )

    def _is_unsure(self, candidate: _Candidate) -> bool:
        if not candidate.reader.any_machine or self.role:
            return False
        owner = role_of_text(self._head(candidate)) or self.owners[candidate.first].role
        return owner is not candidate.reader.role

    def _is_cut(self, candidate: _Candidate) -> bool:
        beside = (range(candidate.first - 1, -1, -1), range(candidate.last, len(self.lines)))
        for positions in beside:
            near = (self.lines[p] for p in positions if self.lines[p].kind is not Kind.BLANK)
            if (line := next(near, None)) and terminal.says_cut(line):
                return True
        return False

    def _head(self, candidate: _Candidate) -> str:
        """Enough of it to find words that tell whose it is."""
        last = min(candidate.last, candidate.first + _HEAD_LINES)
        return "\n".join(self.raw[candidate.first : last])[:_HEAD_CHARS]

    def _text(self, candidate: _Candidate) -> str:
        return terminal.unquoted(self.raw[candidate.first : candidate.last])

    def _trim_end(self, first: int, last: int) -> int:
        while last > first and self.lines[last - 1].kind in {Kind.BLANK, Kind.PAGER, Kind.BREAK}:
            last -= 1
        return last

    def _place_commands(self) -> None:
        """A command nobody knows above output that was placed needs no reader."""
        below = -1
        for position in range(len(self.lines) - 1, -1, -1):
            if self.lines[position].kind is Kind.COMMAND and below in self.placed:
                self.placed.add(position)
            if self.lines[position].kind is not Kind.BLANK:
                below = position

    def _unrecognised_ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of lines left over; blank lines between two of them do not part them."""
        self._place_commands()
        first = last = -1
        for position, line in enumerate(self.lines):
            if position in self.placed:
                if first >= 0:
                    yield first + 1, last + 1
                first = -1
            elif line.kind in {Kind.TEXT, Kind.COMMAND}:
                first = position if first < 0 else first
                last = position
        if first >= 0:
            yield first + 1, last + 1


def _known_facts(readings: Readings | None) -> set[str]:
    return {r.fact_id for r in readings or () if r.kind is ReadingKind.KNOWN}


def _opens_other(rivals: list[Reader], line: Line) -> bool:
    """Whether output of a reader begins here that does not want the part already."""
    return any(reader not in rivals for reader in Reader.started_by(line))
