"""The versions of a record: what was proposed each time, who said what of it, and what changed between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from webapp.diagnosis.catalogue import all_options
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
    kept = list(rows if whole else rows.defer("content"))
    of_version: dict[int, list[Approval]] = {version.number: [] for version in kept}
    for approval in approvals:
        found = version_judged(approval, kept)
        if found is not None:
            of_version[found.number].append(approval)
    return [Judged(version, tuple(of_version[version.number])) for version in kept]


def version_judged(approval: Approval, kept: Sequence[RecordVersion]) -> RecordVersion | None:
    """None for a word from before versions were kept."""
    same = [v for v in kept if v.content_sha256 == approval.content_sha256]
    before = [v for v in same if v.at <= approval.at]
    return next(reversed(before or same), None)


def differences(before: RecordVersion, after: RecordVersion) -> list[Difference]:
    """The parts whose texts differ, in the order of the record."""
    found = []
    for title, text in _PARTS:
        old, new = text(before.content), text(after.content)
        if old != new:
            found.append(Difference(title, old, new))
    return found


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


_PARTS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("Title", lambda content: str(content["title"])),
    ("Chosen", _chosen),
    ("Why", lambda content: str(content["reason"])),
    ("What it has to serve", lambda content: str(content["drivers"])),
    ("What follows", lambda content: str(content["consequences"])),
    ("Why not what else was recommended", lambda content: str(content.get("passed_over", ""))),
    ("Context", lambda content: str(content["context"])),
    ("Predicted effect", _effects),
    ("Options as they stood", _options),
    ("Evidence", _evidence),
)
