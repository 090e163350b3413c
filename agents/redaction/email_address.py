"""E-mail addresses, but neither prompts nor systemd's units (user@1000.service)."""

from collections.abc import Iterator

from agents.redactor import PROMPT, Redactor, Span, clue

_ADDRESS = clue(
    r"(?<![\w.+%@-])(?P<local>[A-Za-z0-9][\w.+%-]{0,63})@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,6}(?P<top>[A-Za-z]{2,24})(?![\w@-]|\.\w|:[~/])",
    "@",
)
_UNITS = frozenset(
    {
        *("service", "socket", "timer", "target", "slice", "mount", "automount", "scope"),
        *("path", "device", "swap", "conf", "so"),
    }
)
_NOT_PEOPLE = ("git", "root")


def find(text: str) -> Iterator[Span]:
    prompts = {match.start("user") for match in PROMPT.matches(text)}
    for match in _ADDRESS.matches(text):
        is_login = match.start() in prompts or match["local"] in _NOT_PEOPLE
        if not is_login and match["top"].lower() not in _UNITS:
            yield match.span()


redactor = Redactor(__name__, find)
