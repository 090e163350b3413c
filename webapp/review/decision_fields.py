"""The one declaration of what a decision record holds.

Model, versions, differences, MADR, bundle, API, search, page and form read it, and repeat no name of a field. How a
text is added: CONTRIBUTING.md, "Adding a text field to a decision".
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from webapp.records.session_fields import Number

LONGEST = 20_000
# What the hash of a record covered first, in this order; then the one text that was declared next. Every text that is
# declared since is hashed by its name, so that its place among the others does not matter.
HASHED_FIRST = ("title", "context", "drivers", "options", "chosen", "reason", "consequences", "pins")
HASHED_NEXT = "passed_over"
NOT_HASHED = ("epoch",)


@dataclass(frozen=True, slots=True)
class Text:
    """How people read and write one text of a record.

    heading: above it, on the page and between versions. section: its heading in MADR, "" for none; lead: words before
    it there. label, hint, placeholder, rows: of its form field; one row is a line. folded: in the part of the form
    that is closed while it is empty. beside_options: the page shows it beside the options that were not chosen, and
    not among the texts. longest: characters that a person may write.
    """

    heading: str
    label: str
    section: str = ""
    lead: str = ""
    hint: str = ""
    placeholder: str = ""
    rows: int = 2
    folded: bool = False
    required: bool = False
    beside_options: bool = False
    longest: int = LONGEST


def text(heading: str, label: str, **more: Any) -> Any:
    """A field of `DecisionTexts`. more: as `Text` has it."""
    declared = Text(heading, label, **more)
    metadata = {"text": declared, "longest": declared.longest}
    return field(metadata=metadata) if declared.required else field(default="", metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class DecisionTexts:
    """What a person writes into a record, in the order in which people read it."""

    title: str = text(
        "Title", "Title", rows=1, longest=200, placeholder="Profile the engine first; the clique in the next window"
    )
    drivers: str = text(
        "What it has to serve",
        "What the choice has to serve",
        section="Decision drivers",
        placeholder="100 tok/s single stream; no window before Sunday; guests are ours alone",
        folded=True,
    )
    reason: str = text(
        "Why",
        "Why these, and why now",
        section="Decision",
        hint="The whole list above is kept with the record, with each option’s status and reasons as they stand now, "
        "and the evidence by its hash.",
        rows=4,
        required=True,
    )
    consequences: str = text("What follows", "What follows from it, good and bad", section="Consequences", folded=True)
    passed_over: str = text(
        "Why not what else was recommended",
        "Why not what is recommended and stays unticked",
        section="Options considered",
        lead="Why not what else was recommended: ",
        hint="A reviewer will ask; it may stay empty.",
        placeholder="if anything is: no window for it, tried before, another day",
        beside_options=True,
    )


TEXTS: dict[str, Text] = {declared.name: declared.metadata["text"] for declared in fields(DecisionTexts)}


@dataclass(frozen=True, kw_only=True)
class Wording(DecisionTexts):
    """What a person decides. chosen: option ids. unsafe_understood: read why unsafe options are unsafe."""

    chosen: tuple[str, ...]
    unsafe_understood: bool = False

    @property
    def texts(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in TEXTS}


@dataclass(frozen=True, kw_only=True)
class DecisionContent(DecisionTexts):
    """What people judge of a record, by the names of its columns. context: the answer of the session; options: the
    whole considered list with states and reasons, as it stood; pins: [{"name", "sha256", "facts"}] of the evidence
    that it rests on; epoch: changes applied before it."""

    chosen: list[str]
    context: str
    options: list[dict[str, Any]]
    pins: list[dict[str, Any]]
    epoch: Number

    @property
    def columns(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def sha256(self) -> str:
        """What an approval is of. An empty text is left out, so that a record keeps its hash when a text is declared
        that it does not have."""
        columns = self.columns
        parts: list[Any] = [columns[name] for name in HASHED_FIRST]
        if columns[HASHED_NEXT]:
            parts.append(columns[HASHED_NEXT])
        known = {*HASHED_FIRST, HASHED_NEXT, *NOT_HASHED}
        if since := {name: words for name, words in columns.items() if name not in known and words}:
            parts.append(since)
        body = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(body.encode()).hexdigest()
