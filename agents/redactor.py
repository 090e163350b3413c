"""Defines a redactor: it finds one kind of secret or name in a text."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Redactor:
    """find: yields the spans of the secrets, without the words around them.

    module: its last word is the kind, the kind's first word names the tokens (<ip-1>). spreads: the words around a
    secret reveal it, so a secret once known is replaced wherever it appears alone. form: the look of its tokens,
    where a parser could not read the redacted output otherwise.
    """

    module: str
    find: Callable[[str], Iterable[Span]]
    spreads: bool = False
    form: str = "<{word}-{number}>"

    @property
    def kind(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def word(self) -> str:
        return self.kind.partition("_")[0]

    def token(self, number: int) -> str:
        return self.form.format(word=self.word, number=number)


@dataclass(frozen=True, slots=True)
class Clue:
    """A pattern within a line. needles: only lines that hold one of these words are searched; finding a word is a
    hundred times as fast as trying a pattern at every character."""

    pattern: re.Pattern[str]
    needles: tuple[str, ...] = ()

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        if not self.needles:
            yield from self.pattern.finditer(text)
        for start, end in _lines_with(self.needles, text):
            yield from self.pattern.finditer(text, start, end)


def clue(pattern: str, *needles: str) -> Clue:
    """Builds a Clue. For a pattern that ignores case, a lower-case needle stands for its usual spellings."""
    compiled = re.compile(pattern, re.MULTILINE)
    if compiled.flags & re.IGNORECASE:
        needles = tuple(dict.fromkeys(w for n in needles for w in (n, n.capitalize(), n.upper(), n.title())))
    return Clue(compiled, needles)


def spans(clues: Iterable[Clue], text: str, group: str) -> Iterator[Span]:
    """The spans of the named group in every match of every clue, where the group matched."""
    for clue in clues:
        for match in clue.matches(text):
            if match[group]:
                yield match.span(group)


def _lines_with(needles: tuple[str, ...], text: str) -> Iterator[Span]:
    """The lines that hold one of the needles, each once."""
    for needle in needles:
        end = 0
        while (at := text.find(needle, end)) >= 0:
            start = text.rfind("\n", end, at) + 1 or end
            end = text.find("\n", at)
            end = end if end >= 0 else len(text)
            yield start, end


# A shell's prompt: "alice@gpu1:~$", "(venv) root@pve ~ #", "[alice@gpu1 dir]$"; quoted by a mail
# program or by a collector's frame too.
PROMPT = clue(
    r"^[ \t>|!]{0,8}(?:\([^()\n]{1,40}\) ?){0,3}\[?(?P<user>[A-Za-z_][\w.-]{0,31})@"
    r"(?P<host>\w[\w.-]{0,62})(?:[: ][^\n$#%]{0,120})?\]?[ \t]?[$#%](?=[ \t\n]|$)",
    "@",
)
