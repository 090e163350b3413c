"""The readers of outputs, probes and benchmarks, with their signatures compiled for the recogniser."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial

from agents.benchmark import all_benchmarks
from agents.facts.fact import View
from agents.parsing.terminal import Line
from agents.probe import Output, Readings, Signature
from agents.probes import all_probes
from agents.safe_parse import parse_safely

_P2P_LETTERS = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "pcie", "rw": "read", "prop": "pcie"}
# How many readers' opening patterns are joined into one.
_GROUP = 8


@dataclass(frozen=True, eq=False)
class Reader:
    """role None: the output of either machine. Patterns are tried on the raw, the unquoted and the dedented line.

    any_machine: the tool prints the same on either machine. reads_command: the parser also reads the command line (a
    benchmark's settings, a VM's number).
    """

    id: str
    role: View | None
    parse: Callable[[Output], Readings]
    typed: re.Pattern[str] | None
    anchored: re.Pattern[str]
    floating: tuple[re.Pattern[str], ...]
    belongs: re.Pattern[str] | None
    above: re.Pattern[str] | None
    score: float
    any_machine: bool = False
    between: tuple[str, ...] = ()
    reads_command: bool = False

    def is_typed(self, command: str) -> bool:
        return self.typed is not None and bool(self.typed.search(command))

    def is_started(self, line: Line) -> bool:
        return self._opens_output(line) or self._holds_start(line)

    def _opens_output(self, line: Line) -> bool:
        for form in line.forms:  # noqa: SIM110 - asked of every line, and any() costs twice as much
            if self.anchored.match(form):
                return True
        return False

    def _holds_start(self, line: Line) -> bool:
        return any(floating.search(line.forms[0]) for floating in self.floating)

    def is_continued(self, line: Line) -> bool:
        if self.belongs is None:
            return False
        for form in line.forms:  # noqa: SIM110 - asked of every line, and any() costs twice as much
            if self.belongs.search(form):
                return True
        return False

    @staticmethod
    def started_by(line: Line, without: Collection[str] = ()) -> list[Reader]:
        """Readers whose output this line opens, best score first. without: ids to leave out."""
        first, anywhere = _prefilter()
        opens = any(first.match(form) for form in line.forms)
        holds = any(pattern.search(line.forms[0]) for pattern in anywhere)
        if not opens and not holds:
            return []
        ids = set(_opened_by(line) if opens else ())
        ids |= {r.id for r in all_readers() if holds and r.floating and r._holds_start(line)}
        return [r for r in all_readers() if r.id in ids and r.id not in without]


def _opened_by(line: Line) -> Iterator[str]:
    for starts, readers in _groups():
        if any(starts.match(form) for form in line.forms):
            yield from (reader.id for reader in readers if reader._opens_output(line))


@cache
def all_readers() -> tuple[Reader, ...]:
    """Every probe and benchmark, best score first."""
    readers = [_reader(p.id, p.role, partial(parse_safely, p), p.signature) for p in all_probes().values()]
    readers += [_reader(b.id, None, partial(parse_safely, b), b.signature) for b in all_benchmarks().values()]
    return tuple(sorted(readers, key=lambda reader: (-reader.score, reader.id)))


def _reader(reader_id: str, role: View | None, parse: Callable[[Output], Readings], signature: Signature) -> Reader:
    return Reader(
        reader_id,
        role,
        parse,
        re.compile(signature.typed) if signature.typed else None,
        _any_of(start for start in signature.starts if _is_anchored(start)),
        tuple(re.compile(start) for start in signature.starts if not _is_anchored(start)),
        re.compile(signature.belongs) if signature.belongs else None,
        re.compile(signature.above) if signature.above else None,
        signature.score,
        signature.any_machine,
        signature.between,
        signature.with_command or role is None,
    )


@cache
def _prefilter() -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    """All anchored starts in one pattern, and the others one by one. Most lines open nothing, and searching an
    alternation at every position costs more than searching its members separately."""
    floating = tuple(p for reader in all_readers() for p in reader.floating)
    return _any_of(reader.anchored.pattern for reader in all_readers()), floating


@cache
def _groups() -> tuple[tuple[re.Pattern[str], tuple[Reader, ...]], ...]:
    """The readers in groups, each with one pattern of its anchored starts."""
    readers = all_readers()
    groups = (readers[n : n + _GROUP] for n in range(0, len(readers), _GROUP))
    return tuple((_any_of(r.anchored.pattern for r in some), some) for some in groups)


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """One pattern of all; with none, it matches nothing."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)")


def _is_anchored(pattern: str) -> bool:
    """Whether every alternative can match only at the start of a line. Patterns with flags or back references count
    as not anchored, because they cannot be joined to others."""
    if re.search(r"\(\?[a-zA-Z]+\)|\\\d", pattern):
        return False
    plain = re.sub(r"\\.", "__", pattern)
    plain = re.sub(r"\[\^?\]?[^\]]*\]", "_", plain)
    while (flat := re.sub(r"\([^()]*\)", "_", plain)) != plain:
        plain = flat
    return all(part.startswith("^") for part in plain.split("|"))


def by_id(reader_id: str) -> Reader:
    """Raises StopIteration for an unknown id."""
    return next(reader for reader in all_readers() if reader.id == reader_id)


def by_name(hint: str) -> Reader | None:
    """The reader whose id the hint contains: "guest.topo_p2p_write", also inside a file name."""
    return next((r for r in all_readers() if r.id in re.split(r"[/\s]|\.txt\b", hint)), None)


def hinted(reader: Reader, hint: str) -> bool:
    """Whether a file's name favours this reader over others that could take the same lines."""
    if reader.id in hint or reader.id.partition(".")[2] in re.sub(r"[-. ]", "_", hint):
        return True
    if reader.is_typed(hint):  # a report names a file after its command
        return True
    letter = re.search(r"p2p[-_. ]+(?:\w*[-_. ])?(rw|r|w|n|a|p|prop)\b", hint.replace("_", " "))
    return letter is not None and reader.id == f"guest.topo_p2p_{_P2P_LETTERS[letter[1]]}"
