"""A session that may be shown in public: every text redacted with the same tokens, people as numbers,
and a report of what was hidden.

The outputs are others then, with other hashes, so that names of evidence change everywhere; the log of
acts is left out, because its hashes are over what was hidden.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any
from uuid import uuid4, uuid5

import msgspec
from django.db import transaction

from agents.framing import clean
from agents.redaction import Entry
from webapp.records.models import DiagnosisSession
from webapp.records.models.link import NOBODY
from webapp.records.reading import parsers_version
from webapp.records.redaction import printed_by, session_tokens
from webapp.records.redaction_on_intake import Hiding
from webapp.review.bundle import format as f
from webapp.review.bundle.export import diagnosis_json, encoded, outputs_of, raw_parts, session_record, zipped
from webapp.review.bundle.importing import Contents, store_session
from webapp.review.decision_fields import DecisionContent

PERSON = "person"  # beside the redactors' kinds
# What Peerpath itself wrote and parses again; a redactor has no business in it.
OURS = frozenset({
    "created_at", "at", "sha256", "content_sha256", "word", "reader", "view", "origin", "stance", "state",
    "kind", "names", "purged_at", "set_aside_at", "first_hypothesis", "sample", "id", "phase", "chosen",
    "facts", "bundle", "role",
})  # fmt: skip
_CITED = re.compile(r"(?<=@)[0-9a-f]{12}(?![0-9a-f])")


def shareable(session: DiagnosisSession) -> bytes:
    """Raises RedactionError and LostError; then nothing may leave."""
    outputs = outputs_of(session)
    last = outputs[-1].evidence.pk if outputs else 0
    printed = list(printed_by(session.pk, last)) if outputs else []
    admins, before = _admins_and_before(session)
    hiding = Hiding(session_tokens(session, last, printed))
    hiding_place = _Hiding(hiding, admins)
    files: dict[str, bytes] = {}
    hidden: list[tuple[int, str, Entry]] = []
    for number, (output, (raw, stderr)) in enumerate(zip(outputs, printed, strict=True)):
        result = hiding.redacted(clean(raw))
        errors = hiding.redacted(stderr.decode(errors="replace"))
        body = result.text.encode()
        files |= raw_parts(number, body, errors.text.encode())
        hiding_place.renamed[output.evidence.sha256] = hashlib.sha256(body).hexdigest()
        hidden += [(number, "", entry) for entry in result.report]
        hidden += [(number, "stderr", entry) for entry in errors.report]
    record = hiding_place.record(session_record(session, outputs))
    report = [f.Hidden(e.kind, e.count, n, record.evidence[n].label, stream, list(e.lines)) for n, stream, e in hidden]
    report += [f.Hidden(kind, count) for kind, count in sorted(hiding_place.counts.items())]
    told = encoded(_together(before, tuple(report)))
    return _with_diagnosis(
        session, record, files | {"session.json": encoded(record).encode(), "redaction.json": told.encode()}
    )


def _admins_and_before(session: DiagnosisSession) -> tuple[list[str], tuple[f.Hidden, ...]]:
    """Whom its links name, and what was hidden before it came here."""
    links = DiagnosisSession.objects.filter(pk=session.pk).order_by("links__asked_at")
    rows = list(links.values_list("links__person", "came_redacted__report"))
    admins = [person for person, _ in rows if person and person != NOBODY]
    return admins, msgspec.convert(rows[0][1] or (), tuple[f.Hidden, ...])


def _together(before: Iterable[f.Hidden], now: Iterable[f.Hidden]) -> list[f.Hidden]:
    """One report of both: an output's lines stay the same lines."""
    entries = {(one.evidence, one.stream, one.kind): one for one in before}
    for one in now:
        key = (one.evidence, one.stream, one.kind)
        first = entries.get(key, f.Hidden(one.kind, 0))
        lines = sorted({*first.lines, *one.lines})
        entries[key] = msgspec.structs.replace(one, count=first.count + one.count, lines=lines)
    return list(entries.values())


def _with_diagnosis(session: DiagnosisSession, record: f.Session, files: dict[str, bytes]) -> bytes:
    """The diagnosis of what is in the bundle: it is opened here for a moment."""
    with transaction.atomic():
        made = store_session(Contents(files, record, uuid4(), session.owner, to_stay=False), {})
        files["diagnosis.json"] = diagnosis_json(made).encode()
        transaction.set_rollback(True)
    digest = hashlib.sha256(files["diagnosis.json"]).hexdigest()
    key = str(uuid5(session.pk, "redacted"))
    manifest = f.Manifest(f.SCHEMA, key, True, digest, parsers_version())
    files["manifest.json"] = encoded(manifest).encode()
    return zipped(files)


class _Hiding:
    """The redaction of a session's own texts. renamed: an output's hash before -> after. counts: places
    of each kind; of people, too."""

    def __init__(self, hiding: Hiding, admins: Iterable[str]) -> None:
        """admins: as links call those without an account."""
        self.hiding = hiding
        self.counts: Counter[str] = Counter()
        self.renamed: dict[str, str] = {}
        self.people: dict[str, str] = {}
        self._same: dict[str, tuple[str, Counter[str]]] = {}
        for name in admins:
            self._numbered(name)

    def record(self, record: f.Session) -> f.Session:
        before = msgspec.to_builtins(record)
        self._meet(before, "")
        for decision in record.decisions:
            for approval in decision.approvals:
                self._numbered(approval.label)
        after = self._walk(before, "")
        for old, new in zip(before["decisions"], after["decisions"], strict=True):
            self._approved(old, new)
        return msgspec.convert(after, f.Session)

    def _approved(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """An approval of the record as it stood is one of the redacted record as it stands."""
        hashes: dict[str, str] = {}
        if after["approvals"]:
            hashes[_content(before).sha256] = _content(after).sha256
        for version in after["versions"]:
            old, new = version["content_sha256"], _content(version["content"]).sha256
            version["content_sha256"] = hashes[old] = new
        for approval in after["approvals"]:
            said_of = approval["content_sha256"]
            approval["content_sha256"] = hashes.get(said_of, said_of)

    def _meet(self, value: Any, key: str) -> None:
        """Everybody has a number before any text is written anew: it may name who wrote a later one."""
        parts = value.items() if isinstance(value, dict) else ((key, item) for item in value)
        for name, item in parts:
            if isinstance(item, dict | list):
                self._meet(item, name)
            elif name in f.PEOPLE and isinstance(item, str):
                self._numbered(item)

    def _walk(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self._text(value, key) if value else value
        if isinstance(value, dict):
            return {k: self._walk(v, k) for k, v in value.items()}
        return [self._walk(v, key) for v in value] if isinstance(value, list) else value

    def _text(self, text: str, key: str) -> str:
        if key in f.PEOPLE:
            self.counts[PERSON] += 1
            return self._numbered(text)
        if key in {"sha256", "bundle"}:
            return self.renamed.get(text, text)
        if key in OURS:
            return text
        hidden, counts = self._once(text)
        if counts:
            self.counts.update(counts)
        return hidden

    def _once(self, text: str) -> tuple[str, Counter[str]]:
        """Each text once, unless something was learnt since: versions of a record repeat its options."""
        redaction = self._same.get(text)
        if redaction is None:
            known = len(self.hiding.tokens)
            redaction = self._hidden(text)
            if len(self.hiding.tokens) > known:
                self._same.clear()
            self._same[text] = redaction
        return redaction

    def _hidden(self, text: str) -> tuple[str, Counter[str]]:
        """The text without secrets and people, and the places of each kind."""
        nameless, people = self._names.subn(lambda m: self.people[m[0]], text)
        result = self.hiding.redacted(nameless)
        counts = Counter({entry.kind: entry.count for entry in result.report})
        counts.update({PERSON: people} if people else {})
        return _CITED.sub(self._digest, result.text), counts

    @cached_property
    def _names(self) -> re.Pattern[str]:
        """Of everybody, once all are met."""
        longest_first = sorted(self.people, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def _numbered(self, name: str) -> str:
        if not name:
            return ""
        return self.people.setdefault(name, f"person {len(self.people) + 1}")

    def _digest(self, match: re.Match[str]) -> str:
        matches = (new for old, new in self.renamed.items() if old.startswith(match[0]))
        return next(matches, match[0])[:12]


def _content(plain: dict[str, Any]) -> DecisionContent:
    return msgspec.convert(plain, DecisionContent)
