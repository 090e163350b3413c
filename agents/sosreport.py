"""A sosreport: a tree of files, all of one machine."""

from collections.abc import Iterable, Mapping

from agents.facts import View
from agents.framing import clean
from agents.role_words import role_of_text, says_both

_MARK = "sos_commands/"
# The words stand early in a file, and a report holds thousands.
_SEARCHED_BYTES = 100_000

Owners = Mapping[str, View]


def owners(files: Iterable[tuple[str, bytes]]) -> Owners:
    """Root folder of each report among these (path, content) -> its machine, where its files show it."""
    texts: dict[str, list[str]] = {}
    listed = [(path, raw) for path, raw in files if raw]
    roots = {path.partition(_MARK)[0] for path, _ in listed if _MARK in path}
    for path, raw in listed if roots else ():
        if root := _root(path, roots):
            texts.setdefault(root, []).append(clean(raw[:_SEARCHED_BYTES]))
    views = {root: _owner("\n".join(parts)) for root, parts in texts.items()}
    return {root: view for root, view in views.items() if view}


def hint_with_owner(path: str, hint: str, views: Owners) -> str:
    """The hint of a report's file, with the word for the machine in front of it."""
    root = _root(path, views)
    return f"{views[root].value} {hint}" if root else hint


def _root(path: str, roots: Iterable[str]) -> str:
    return max((root for root in roots if root and path.startswith(root)), key=len, default="")


def _owner(text: str) -> View | None:
    return None if says_both(text) else role_of_text(text)
