"""The one way in for raw output: Received -> Read -> Recorded. Pastes, uploads, links, `--save`, samples, runs and
rereading all take it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.facts import View
from agents.framing import Frame
from agents.probes import handed_for
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Evidence, Run, StoredReading
from webapp.records.reading import Read, read
from webapp.records.received import (
    Received,
    Upload,
    frame_output,
    store_answers,
    store_text,
    stored_output,
    text_output,
    unpack_upload,
)
from webapp.records.recorded import ReadPart, Recorded, record_again, record_answers, record_text

# A report of a whole system holds thousands of files. So many that say nothing are kept; of the rest, those that
# say something.
MOST_KEPT_UNREAD = 100


@dataclass(frozen=True, slots=True)
class Intake:
    """What became of one person's uploads.

    texts: each part that was kept. missing: ids of the view's probes that the session has no answer to yet. notes:
    sentences about what was not kept.
    """

    texts: tuple[Recorded, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def understood(self) -> tuple[ReadPart, ...]:
        return tuple(part for text in self.texts for part in text.understood)

    @property
    def duplicate(self) -> bool:
        return bool(self.texts) and all(text.duplicate for text in self.texts)

    @property
    def to_assign(self) -> list[Evidence]:
        """Evidence with lines that a person can assign to a reader or a machine."""
        rows = {text.evidence.pk: text.evidence for text in self.texts}.values()
        return [row for row in rows if row.unplaced or row.doubts or row.assignments.exists()]


def take_uploads(
    session: DiagnosisSession,
    uploads: Sequence[Upload],
    *,
    user: User | None,
    view: View | None = None,
    label: str = "",
    hide: bool = False,
) -> Intake:
    """Takes texts and files, archives among them; each part is evidence.

    label: for the text without a name. hide: names, addresses and serials are replaced before anything is stored.
    """
    texts: list[Recorded] = []
    notes: list[str] = []
    unread = 0
    for upload in uploads:
        unpacked = unpack_upload(session, upload, view=view, label=label, redact=hide)
        notes += unpacked.notes
        for text in unpacked.texts:
            recorded = _take_text(text, session, user, may_drop=text.packed and unread >= MOST_KEPT_UNREAD)
            unread += recorded is None or not recorded.understood
            texts += [recorded] if recorded else []
    if unread > MOST_KEPT_UNREAD:
        notes.append(f"{unread - MOST_KEPT_UNREAD:,} files said nothing of use and were not kept.")
    missing = missing_probes(session, view or _common_view(texts[-1])) if texts else ()
    return Intake(tuple(texts), missing, tuple(notes))


def take_text(
    session: DiagnosisSession,
    raw: bytes,
    *,
    user: User | None,
    view: View | None = None,
    label: str = "",
    origin: str = "paste",
    hint: str = "",
) -> Recorded:
    """Takes one text that is no archive: terminal output, a file, or a collector's framed output."""
    text = text_output(raw, view=view, label=label, origin=origin, hint=hint)
    return record_text(read(store_text(text, session, user)), user)


def take_read(session: DiagnosisSession, text: Read, *, user: User | None) -> Recorded:
    """Takes a text that was read before it was stored; it is not read again."""
    return record_text(replace(text, received=store_text(text.received, session, user)), user)


def take_frames(run: Run, frames: Sequence[Frame]) -> None:
    """Takes probes' answers as they come. The same answer again is ignored; one that was stored and not read, because
    the database went away, is read."""
    _take_answers(run, [frame_output(frame) for frame in frames])


def take_benchmark_output(run: Run, raw: bytes) -> Evidence:
    """Takes what a benchmark printed, whole or as far as it came."""
    return _take_answers(run, [Received(run.names[0], raw, view=View.GUEST)])[0].evidence


def reread_one(evidence: Evidence) -> bool:
    """Applies today's parsers, and people's assignments of its lines, to stored evidence. Whether it now reads
    differently. Raises LostError."""
    return not evidence.purged_at and record_again(read(stored_output(evidence)))


def missing_probes(session: DiagnosisSession, view: View | None) -> tuple[str, ...]:
    """Ids of the probes of this view that the session has no answer to, in order."""
    if view not in (View.GUEST, View.HOST):
        return ()
    readings = StoredReading.objects.of_the_case().filter(evidence__session=session)
    answered = set(readings.order_by().values_list("reader", flat=True).distinct())
    return tuple(probe.id for probe in handed_for(view) if probe.id not in answered)


def _take_text(text: Received, session: DiagnosisSession, user: User | None, *, may_drop: bool) -> Recorded | None:
    """may_drop: it is kept only if it says something; None when it was dropped."""
    output = read(text if may_drop else store_text(text, session, user))
    if may_drop:
        return take_read(session, output, user=user) if output.reading.items else None
    return record_text(output, user)


def _take_answers(run: Run, outputs: Sequence[Received]) -> list[Read]:
    answers = [read(output) for output in store_answers(run, outputs)]
    record_answers(run, answers)
    return answers


def _common_view(text: Recorded) -> View | None:
    views = {part.view for part in text.understood}
    return views.pop() if len(views) == 1 else None
