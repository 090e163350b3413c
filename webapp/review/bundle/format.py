"""What a bundle holds, `peerpath.bundle/1`: a zip archive, stored, of JSON and raw outputs.

manifest.json  Manifest: what this is, and the diagnosis it gave where it was made
session.json   Session: all records, in order
events.jsonl   the log with its hashes; not in a redacted bundle
evidence/N and evidence/N.err   what evidence N printed, as it came or redacted
redaction.json list of Hidden; only in a redacted bundle, and in one of a session that came as one

People are names: accounts are another instance's. Keys are numbers in order, so that a bundle that was
opened and taken away again is the same bytes.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import msgspec

SCHEMA = "peerpath.bundle/1"
# As the database holds it; what is larger is no number of ours.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class BundleError(Exception):
    """Why a file is not opened as a bundle, in words for people."""


class Meta(TypedDict, total=False):
    """What is known of an output beside its bytes; two times that this instance made."""

    exit_code: int | None
    alternative: int
    truncated: bool
    timed_out: bool
    duration_ms: int | None
    bundle: str
    hint: str
    purged_at: str
    set_aside_at: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """session: the session's id. diagnosis_sha256: of the JSON in `diagnosis.json`."""

    schema: str
    session: str
    redacted: bool
    diagnosis_sha256: str
    parsers: str


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """role, host, port, user: of its target. names: probe ids, or the benchmark's."""

    number: Number
    kind: str
    names: list[str]
    state: str
    epoch: Number
    problem: str
    role: str
    host: str
    port: Number
    user: str
    created_by: str
    created_at: str


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    first: Number
    last: Number
    reader: str
    view: str
    created_by: str
    created_at: str


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """run: its run's number. created_by: "" when nobody with an account gave it."""

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
    assignments: list[Assignment]


class Comment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """reply_to: place of its thread's first comment in the list."""

    anchor: str
    stance: str
    reply_to: Number | None
    text: str
    author: str
    created_at: str


class Approval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """word: "" in bundles from before there was more than yes and no."""

    by: str
    label: str
    approves: bool
    reason: str
    content_sha256: str
    at: str
    word: str = ""
    disputes: Number = 0


class RecordVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: Number
    content: dict[str, Any]
    content_sha256: str
    proposed_by: str
    at: str


class Compared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """evidence: names of outputs."""

    what: str
    found: str
    gate: str
    why: str
    evidence: list[str]


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    what: str
    state: str
    found: str
    evidence: list[str]


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    compared: list[Compared]
    checks: list[Checked]
    lacks: list[str]
    harm: list[str]


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """supersedes: a decision's number. proof: None while it is open, and in bundles from before there was
    such a thing."""

    number: Number
    title: str
    context: str
    options: list[dict[str, Any]]
    chosen: list[str]
    reason: str
    drivers: str
    consequences: str
    pins: list[dict[str, Any]]
    epoch: Number
    state: str
    outcome: str
    supersedes: Number | None
    proposed_by: str
    created_at: str
    approvals: list[Approval]
    versions: list[RecordVersion] = []
    passed_over: str = ""
    proof: Proof | None = None


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    owner: str
    symptom: str
    workload: dict[str, Any]
    first_hypothesis: str
    own_words: str
    vmid: Number | None
    epoch: Number
    quorum: Number
    sample: str
    created_at: str
    runs: list[Run]
    evidence: list[Evidence]
    comments: list[Comment]
    decisions: list[Decision]


class Hidden(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Places where one kind was hidden in one text. evidence: its number, and its label as it is in the
    bundle; None for the session's own texts, which have no lines. stream: "stderr", else its output.
    lines: 1-based, each once."""

    kind: str
    count: Number
    evidence: Number | None = None
    label: str = ""
    stream: str = ""
    lines: list[Number] = []


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: Number
    kind: str
    actor: str
    data: dict[str, Any]
    at: str
    hash: str
