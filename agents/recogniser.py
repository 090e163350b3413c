"""Finds the probe or benchmark that each part of a pasted text answers.

A typed command line (after a prompt, in a heading, or alone) opens a part for sure; otherwise a line opens it that
such output starts with. A part continues while lines belong to it. A part counts only when its reader's parser gets a
value from it; the rest is reported as unrecognised.
"""

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

# So many foreign lines (a warning, a cut) do not end a part.
_GAP_LINES = 3
# The confidence of readers of one role whose outputs look the same, when nothing tells them apart.
_AMBIGUOUS = 0.6
_ROLE_GUESSED = 0.7
_MOST_FAILURES = 20
_HEAD_LINES = 2000
_HEAD_CHARS = 50_000
_HINTED = 0.9
# The confidence of an output of a sure kind without an answer in it (a log without its events).
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
        self.failed_until: dict[str, int] = {}  # a reader that failed is not tried on every line
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
        """Every reader of the command gets the output: one command may answer two probes."""
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
        """The parts that other readers get from lines inside these parts."""
        reader_ids = {part.reader for part in parts}
        more = [
            _Candidate(reader, part.first - 1, part.last, reader.score)
            for part in parts
            for reader in map(by_id, by_id(part.reader).between)
            if reader.id not in reader_ids
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
        """The end of the part: at the next prompt, or earlier where foreign lines open another reader's output or
        follow a blank line with no more lines of this part."""
        belonging, left = first, 0  # left: the first blank line below the lines that belong
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
        """Readers to skip at this line: they got nothing from lines that include it. Another output may begin below a
        blank line, so there a reader is tried a few times more."""
        below_blank = position > 0 and self.lines[position - 1].kind is Kind.BLANK
        return {
            name
            for name, until in self.failed_until.items()
            if position < until and not (below_blank and self.failures[name] < _MOST_FAILURES)
        }

    def _is_silent(self, candidate: _Candidate) -> bool:
        """Whether its reader knows this kind of output but every reading is `not_run`."""
        if candidate.reader.score < _SURE_START or candidate.reader.role is None:
            return False
        output = Output(self._text(candidate), "", None, -1)
        return all(r.kind is ReadingKind.NOT_RUN for r in candidate.reader.parse(output))

    def _score(self, reader: Reader, position: int) -> float:
        return max(reader.score, _HINTED) if self._is_hinted(reader, position) else reader.score

    def _is_hinted(self, reader: Reader, first: int) -> bool:
        """Whether the file's name or the text right above favours the reader, e.g. "Peer access (topo -p2p w)"."""
        return hinted(reader, self.hint) or hinted(reader, ownership.heading(self.lines, first, self.placed))

    def _may_speak(self, reader: Reader) -> bool:
        """Whether the reader may take lines of the known role. A reader of the other machine may not take output that
        any machine could print."""
        if self.role is None or reader.role in {None, self.role} or reader.id in self.hint:
            return True
        return not reader.any_machine

    def _without_other_machines(self, candidates: list[_Candidate]) -> list[_Candidate]:
        own = [c for c in candidates if not self._is_other_machines(c)]
        self.failed_until |= {c.reader.id: c.last for c in candidates if c not in own}
        return own

    def _is_other_machines(self, candidate: _Candidate) -> bool:
        """Whether the output belongs to the machine that this reader is not for: the role is unknown, any machine
        could print the output, and its words, prompt or heading are the other machine's."""
        reader = candidate.reader
        if self.role or reader.role is None or not reader.any_machine:
            return False
        other = View.GUEST if reader.role is View.HOST else View.HOST
        text, owner = self._head(candidate), self.owners[candidate.first]
        by_place = owner.named and owner.role is other and role_of_text(text) is None
        return by_place or says_only(text, other)

    def _first_of_started(self, reader: Reader, position: int) -> int:
        """The first line of the part: the line above where it is a name that belongs to the output, else this one."""
        if reader.above is None or position == 0 or position - 1 in self.placed:
            return position
        named = self.lines[position - 1]
        # A name may look like a tool: "nvidia-gpu".
        may_be = named.kind in {Kind.TEXT, Kind.COMMAND} and not named.prompted
        belongs = may_be and any(reader.above.search(form) for form in named.forms)
        return position - 1 if belongs else position

    def _end_of_started(self, reader: Reader, first: int, rivals: list[Reader]) -> int:
        """The line after the last one that belongs. If the reader has no rule for that: the start of the next part."""
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
        """The machine of this output: the known role, else by the part's words, else by the section's owner, else the
        guest."""
        if self.role:
            return self.role
        own = role_of_text(self._head(candidate))
        return own or self.owners[candidate.first].role or View.GUEST

    def _with_doubt(self, candidate: _Candidate, rivals: list[_Candidate]) -> _Candidate:
        """The candidate with less confidence where another reader could take the same lines and only the order
        decided."""
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
        """The candidates of one role, because guest and host readers share commands."""
        roles = {c.reader.role for c in candidates if c.reader.role}
        if len(roles) < 2:
            return candidates
        role = self._role(max(candidates, key=lambda c: c.last - c.first))
        return [self._with_role_doubt(c) for c in candidates if c.reader.role in {None, role}]

    def _confirm(self, candidate: _Candidate, typed: bool) -> _Candidate | None:
        """The candidate if its parser gets a known value, or, after a typed command, a definite no."""
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
        """Takes the whole file for the reader in its name, when no part of the file is that reader's."""
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
        """The start of the candidate's text, enough to find words that show its machine."""
        last = min(candidate.last, candidate.first + _HEAD_LINES)
        return "\n".join(self.raw[candidate.first : last])[:_HEAD_CHARS]

    def _text(self, candidate: _Candidate) -> str:
        return terminal.unquoted(self.raw[candidate.first : candidate.last])

    def _trim_end(self, first: int, last: int) -> int:
        while last > first and self.lines[last - 1].kind in {Kind.BLANK, Kind.PAGER, Kind.BREAK}:
            last -= 1
        return last

    def _place_commands(self) -> None:
        """Places unknown commands right above a placed output."""
        below = -1
        for position in range(len(self.lines) - 1, -1, -1):
            if self.lines[position].kind is Kind.COMMAND and below in self.placed:
                self.placed.add(position)
            if self.lines[position].kind is not Kind.BLANK:
                below = position

    def _unrecognised_ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of lines without a part; blank lines do not split a range."""
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
    """Whether this line opens the output of a reader that is not among the rivals."""
    return any(reader not in rivals for reader in Reader.started_by(line))
