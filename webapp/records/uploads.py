"""What a person gives at once: a text and files, archives among them. Each part is evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agents import sosreport
from agents.archives import ArchiveError, Member, hint_of, is_archive, unpack
from agents.facts import View
from agents.raw_reading import EDITED
from webapp.accounts.models import User
from webapp.records import intake, parse_process
from webapp.records.intake import Taken, Understood
from webapp.records.models import DiagnosisSession, Evidence
from webapp.records.redaction import RedactionError
from webapp.records.redaction_on_intake import hide_members

# A report of a whole system holds thousands of files; of so many, those that say something are kept.
MOST_KEPT_UNREAD = 100
# As large as a paste may be; the settings' limit is for forms alone.
LARGEST_UPLOAD_BYTES = 50 * 2**20


@dataclass(frozen=True, slots=True)
class Upload:
    """name: the file's; "" for a text that was typed or pasted."""

    name: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Received:
    """takes: what became of each part. notes: sentences about what was not taken."""

    takes: tuple[Taken, ...]
    notes: tuple[str, ...] = ()

    @property
    def understood(self) -> tuple[Understood, ...]:
        return tuple(part for taken in self.takes for part in taken.understood)

    @property
    def duplicate(self) -> bool:
        return bool(self.takes) and all(taken.duplicate for taken in self.takes)

    @property
    def to_say(self) -> list[Evidence]:
        """Evidence with lines that a person can say something of."""
        found = {taken.evidence.pk: taken.evidence for taken in self.takes}
        return [e for e in found.values() if e.unplaced or e.doubts or e.assignments.exists()]

    @property
    def missing(self) -> tuple[str, ...]:
        return self.takes[-1].missing if self.takes else ()


def receive(
    session: DiagnosisSession,
    uploads: Sequence[Upload],
    *,
    user: User | None,
    view: View | None = None,
    label: str = "",
    hide: bool = False,
) -> Received:
    """Stores and reads every part. label: for the text without a name. hide: names, addresses and
    serials are replaced before anything is stored."""
    takes: list[Taken] = []
    notes: list[str] = []
    unread = 0
    for upload in uploads:
        members, problems = _members(upload)
        notes += problems
        if hide:
            try:
                members, hiding = hide_members(session, members)
            except RedactionError as error:
                notes.append(f"{upload.name or 'The text'} was not stored: {error}")
                continue
            notes.append(hiding.report())
        owners = sosreport.owners((member.path, member.data) for member in members)
        for member in members:
            hint = sosreport.hint_with_owner(member.path, hint_of(member.path), owners)
            may_drop = is_archive(upload.raw) and unread >= MOST_KEPT_UNREAD
            if may_drop and not _says_something(member, hint, view):
                unread += 1
                continue
            taken = _take(session, member, hint, user, view, label)
            unread += not taken.understood
            takes.append(_without_our_own_changes(taken) if hide else taken)
    if unread > MOST_KEPT_UNREAD:
        notes.append(f"{unread - MOST_KEPT_UNREAD:,} files said nothing of use and were not kept.")
    return Received(tuple(takes), tuple(notes))


def _without_our_own_changes(taken: Taken) -> Taken:
    """Names were replaced in it by us, so that it is not as it was printed says nothing of the person."""
    return replace(taken, notes=tuple(note for note in taken.notes if note != EDITED))


def _members(upload: Upload) -> tuple[list[Member], list[str]]:
    """The parts to take, and why the others are not."""
    try:
        found = unpack(upload.raw, upload.name)
    except ArchiveError as error:
        return [], [f"{upload.name or 'The archive'} was refused: {error}"]
    return [m for m in found if m.data.strip()], list(_problems(found))


def _problems(members: Iterable[Member]) -> list[str]:
    """The first few one by one: a report may hold hundreds of links."""
    left_out = [f"{m.path or 'It'} was left out: {m.problem}." for m in members if m.problem]
    shown = left_out[:5]
    return [*shown, f"{len(left_out) - 5:,} more were left out."] if left_out[5:] else shown


def _says_something(member: Member, hint: str, view: View | None) -> bool:
    return bool(parse_process.read(member.data, role=view, hint=hint).items)


def _take(
    session: DiagnosisSession, member: Member, hint: str, user: User | None, view: View | None, label: str
) -> Taken:
    return intake.take_text(
        session,
        member.data,
        user=user,
        view=view,
        label=member.path or label,
        origin="upload" if member.path else "paste",
        hint=hint,
    )
