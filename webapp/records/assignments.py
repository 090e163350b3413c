"""A person says what lines are: which reader they are for, or whose output they are."""

from django.db import transaction
from django.db.models import QuerySet

from agents.benchmark import all_benchmarks
from agents.facts import ReadingKind, View
from agents.framing import clean
from agents.probes import all_probes
from agents.raw_reading import LineRange, title_of
from webapp.accounts.models import User
from webapp.records import intake
from webapp.records.models import Assignment, DiagnosisSession, Event, Evidence
from webapp.records.received import BUNDLE, PASTE

TAKE_BACK = "take_back"
_ANSWERS = {ReadingKind.KNOWN, ReadingKind.ABSENT, ReadingKind.UNSUPPORTED}


class AssignmentError(Exception):
    """Nothing was said of these lines; the message says why, for people."""


def assignable(session: DiagnosisSession) -> QuerySet[Evidence]:
    """Texts of whose lines a person can say what they are."""
    return session.evidence.filter(reader__in=(PASTE, BUNDLE), purged_at=None)


def check_assignment(evidence: Evidence, lines: LineRange, meant: str) -> None:
    """meant: a reader's id, a machine's view, or TAKE_BACK. Raises AssignmentError, LostError."""
    if not meant:
        raise AssignmentError("Choose what these lines are.")
    if meant not in {TAKE_BACK, View.GUEST, View.HOST} | all_probes().keys() | all_benchmarks().keys():
        raise AssignmentError(f"There is no reader {meant}.")
    if not assignable(evidence.session).filter(pk=evidence.pk).exists():
        raise AssignmentError("Only of the lines of a text that was pasted or collected can one say what they are.")
    if not 1 <= lines[0] <= lines[1] <= clean(evidence.raw).count("\n") + 1:
        raise AssignmentError("There are no such lines.")


def assign(evidence: Evidence, lines: LineRange, *, user: User, reader: str = "", view: View | None = None) -> str:
    """These lines are for this reader, or this machine's. A sentence says what it got from them."""
    _record_assignment(evidence, lines, user, "lines_assigned", reader, view)
    answers = evidence.readings.filter(kind__in=_ANSWERS)
    where = f"Lines {lines[0]}–{lines[1]}"
    if reader:
        rows = [row for row in answers.filter(reader=reader) if _overlaps_lines(row.lines, lines)]
        if rows:
            return f"{where} are now read as “{title_of(reader)}”."
        detail = evidence.readings.filter(reader=reader).exclude(kind__in=_ANSWERS).last()
        why = f": {detail.detail}" if detail and detail.detail else ""
        return f"“{title_of(reader)}” gets nothing from lines {lines[0]}–{lines[1]}{why}."
    if any(_overlaps_lines(row.lines, lines) for row in answers):
        return f"{where} are now read as the {view}'s."
    return f"{where} are no longer the other machine's; nothing of the {view}'s was found in them."


def take_back(evidence: Evidence, lines: LineRange, *, user: User) -> str:
    """What was said of these lines counts no more; they are read as before."""
    _record_assignment(evidence, lines, user, "lines_unassigned", "", None)
    return f"Lines {lines[0]}–{lines[1]} are read as they were before."


def _record_assignment(
    evidence: Evidence, lines: LineRange, user: User, kind: str, reader: str, view: View | None
) -> None:
    about = {"first": lines[0], "last": lines[1], "reader": reader, "view": view or ""}
    with transaction.atomic():
        session = DiagnosisSession.objects.select_for_update().get(pk=evidence.session_id)
        Assignment.objects.create(evidence=evidence, created_by=user, **about)
        Event.record(session, kind, user, name=evidence.name, label=evidence.label, **about)
    intake.reread_one(evidence)


def _overlaps_lines(numbers: list[int], lines: LineRange) -> bool:
    """A reading that names no line is of the whole."""
    return not numbers or any(lines[0] <= number <= lines[1] for number in numbers)
