"""The versions of a record: what was proposed each time, who said what of it, and what changed between."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from webapp.diagnosis.catalogue import all_options
from webapp.review.decision_fields import TEXTS
from webapp.review.models import Approval, Decision, RecordVersion


@dataclass(frozen=True, slots=True)
class Judged:
    """One version and the words on it, oldest first."""

    version: RecordVersion
    words: tuple[Approval, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One part of a record in two versions, as text."""

    title: str
    before: str
    after: str


def versions_of(decision: Decision, approvals: Iterable[Approval], *, whole: bool = False) -> list[Judged]:
    """Oldest first; whole: with their texts. A word belongs to the newest version of its text that was
    there when it was said."""
    rows = decision.versions.select_related("proposed_by")
    versions = list(rows if whole else rows.defer("content"))
    words: dict[int, list[Approval]] = {version.number: [] for version in versions}
    for approval in approvals:
        version = version_judged(approval, versions)
        if version is not None:
            words[version.number].append(approval)
    return [Judged(version, tuple(words[version.number])) for version in versions]


def version_judged(approval: Approval, versions: Sequence[RecordVersion]) -> RecordVersion | None:
    """None for a word from before versions were kept."""
    same = [v for v in versions if v.content_sha256 == approval.content_sha256]
    before = [v for v in same if v.at <= approval.at]
    return next(reversed(before or same), None)


def differences(before: RecordVersion, after: RecordVersion) -> list[Difference]:
    """The parts whose texts differ, in the order of the record."""
    texts = ((title, text(before.content), text(after.content)) for title, text in _PARTS)
    return [Difference(title, old, new) for title, old, new in texts if old != new]


def _chosen(content: dict[str, Any]) -> str:
    titles = {option.id: option.title for option in all_options()}
    return "; ".join(titles.get(name, name) for name in content["chosen"])


def _options(content: dict[str, Any]) -> str:
    """Of the options, their states: the reasons follow the evidence."""
    return "; ".join(f"{option['title']}: {option['status'].replace('_', ' ')}" for option in content["options"])


def _effects(content: dict[str, Any]) -> str:
    chosen = [option for option in content["options"] if option["id"] in content["chosen"]]
    parts = [(option["title"], option["predicted_effect"]) for option in chosen]
    return "; ".join(f"{title}: {low:.2f}–{high:.2f} ×" for title, (low, high) in _known(parts))


def _known(parts: list[tuple[str, Any]]) -> list[tuple[str, tuple[float, float]]]:
    return [(title, (effect[0], effect[1])) for title, effect in parts if effect]


def _evidence(content: dict[str, Any]) -> str:
    return "; ".join(pin["name"] for pin in content["pins"])


def _text(column: str) -> Callable[[dict[str, Any]], str]:
    """A version from before the text was declared has none."""
    return lambda content: str(content.get(column, ""))


_TEXTS = tuple((declared.heading, _text(column)) for column, declared in TEXTS.items())
_PARTS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("Chosen", _chosen),
    *_TEXTS,
    ("Context", _text("context")),
    ("Predicted effect", _effects),
    ("Options as they stood", _options),
    ("Evidence", _evidence),
)
