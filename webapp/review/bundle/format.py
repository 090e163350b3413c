"""What a bundle holds, `peerpath.bundle/1`: a zip archive, stored, of JSON and raw outputs.

manifest.json  Manifest: what this is, and the diagnosis it gave where it was made
session.json   Session: all records, in order
events.jsonl   the log with its hashes; not in a redacted bundle
evidence/N and evidence/N.err   what evidence N printed, as it came or redacted
redaction.json list of Hidden; only in a redacted bundle, and in one of a session that came as one

A record has the names of its row's columns, so that `rows.py` carries it in both directions. People are names: accounts
are another instance's. Times are ISO 8601. Keys are numbers in order, so that a bundle that was opened and taken away
again is the same bytes.
"""

from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec

from webapp.records.session_fields import Number, SessionFields
from webapp.review.decision_fields import DecisionContent

SCHEMA = "peerpath.bundle/1"
# Fields with the name of a person; "" where nobody with an account did it.
PEOPLE = frozenset({"owner", "created_by", "author", "proposed_by", "by"})


class BundleError(Exception):
    """Why a file is not opened as a bundle, in words for people."""


class Meta(TypedDict, total=False):
    """What is known of an output beside its bytes."""

    exit_code: int | None
    alternative: int
    truncated: bool
    timed_out: bool
    duration_ms: int | None
    bundle: str
    hint: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """session: the session's id. diagnosis_sha256: of the JSON in `diagnosis.json`."""

    schema: str
    session: str
    redacted: bool
    diagnosis_sha256: str
    parsers: str


@dataclass(frozen=True, slots=True)
class Target:
    role: str
    host: str
    port: Number
    user: str


@dataclass(frozen=True, slots=True)
class Run:
    """names: probe ids, or the benchmark's."""

    number: Number
    kind: str
    names: list[str]
    state: str
    epoch: Number
    problem: str
    target: Target
    created_by: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Assignment:
    first: Number
    last: Number
    reader: str
    view: str
    created_by: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """run: its run's number. purged_at, set_aside_at: None where that did not happen."""

    run: Number | None
    reader: str
    view: str
    origin: str
    label: str
    sha256: str
    meta: Meta
    epoch: Number
    created_by: str
    created_at: str
    purged_at: str | None
    set_aside_at: str | None
    assignments: list[Assignment]


@dataclass(frozen=True, slots=True)
class Comment:
    """reply_to: place of its thread's first comment in the list."""

    anchor: str
    stance: str
    reply_to: Number | None
    text: str
    author: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Approval:
    by: str
    label: str
    word: str
    reason: str
    content_sha256: str
    disputes: Number
    at: str


@dataclass(frozen=True, slots=True)
class RecordVersion:
    number: Number
    content: DecisionContent
    content_sha256: str
    proposed_by: str
    at: str


@dataclass(frozen=True, slots=True)
class Compared:
    """evidence: names of outputs."""

    what: str
    found: str
    gate: str
    why: str
    evidence: list[str]


@dataclass(frozen=True, slots=True)
class Checked:
    what: str
    state: str
    found: str
    evidence: list[str]


@dataclass(frozen=True, slots=True)
class Proof:
    compared: list[Compared]
    checks: list[Checked]
    lacks: list[str]
    harm: list[str]


@dataclass(frozen=True, kw_only=True)
class Decision(DecisionContent):
    """supersedes: a decision's number. proof: None while it is open, and of one closed before there were proofs."""

    number: Number
    state: str
    outcome: str
    supersedes: Number | None
    proposed_by: str
    created_at: str
    approvals: list[Approval]
    versions: list[RecordVersion]
    proof: Proof | None


@dataclass(frozen=True, kw_only=True)
class Session(SessionFields):
    owner: str
    created_at: str
    runs: list[Run]
    evidence: list[Evidence]
    comments: list[Comment]
    decisions: list[Decision]


class Hidden(msgspec.Struct, frozen=True, omit_defaults=True):
    """Places where one kind was hidden in one text. evidence: its number, and its label as it is in the
    bundle; None for the session's own texts, which have no lines. stream: "stderr", else its output.
    lines: 1-based, each once."""

    kind: str
    count: Number
    evidence: Number | None = None
    label: str = ""
    stream: str = ""
    lines: list[Number] = []


@dataclass(frozen=True, slots=True)
class Event:
    number: Number
    kind: str
    actor: str
    data: dict[str, Any]
    at: str
    hash: str
