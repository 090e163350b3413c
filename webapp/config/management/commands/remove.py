"""`remove SESSION --yes`: takes a whole session away."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.operations.purge import UnderWayError, give_back, remove
from webapp.records.blob_store import LostError
from webapp.records.models import DiagnosisSession


class Command(BaseCommand):
    help = (
        "Takes a session away with its outputs, what was read from them, its runs, decisions, words, links"
        " and log. Without --yes it only says what would go. There is no way back but a backup or a bundle."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session", type=UUID, metavar="SESSION", help="its id, as in its address")
        parser.add_argument("--yes", action="store_true", help="do it")
        parser.add_argument(
            "--full",
            action="store_true",
            help="PostgreSQL: give the space back to the disk; locks the tables meanwhile",
        )

    def handle(self, *, session: UUID, yes: bool, full: bool, **_: Any) -> None:
        record = DiagnosisSession.objects.filter(pk=session).first()
        if record is None:
            raise CommandError(f"There is no session {session}.", returncode=2)
        contents = _contents_of(record)
        if not yes:
            self.stdout.write(f"Would go: {contents}\nNothing was removed; with --yes it is.")
            return
        try:
            remove(record)
        except UnderWayError as error:
            raise CommandError(f"Nothing was removed. {error}") from error
        except LostError as error:
            raise CommandError(f"{error} Its outputs here are gone; ask again for the rest.") from error
        give_back(whole=full)
        self.stdout.write(f"Removed: {contents}")


def _contents_of(session: DiagnosisSession) -> str:
    counts = {
        ("output", "outputs"): session.evidence.count(),
        ("run", "runs"): session.runs.count(),
        ("decision", "decisions"): session.decisions.count(),
        ("comment", "comments"): session.comments.count(),
        ("link", "links"): session.links.count(),
        ("person", "people"): session.members.count(),
    }
    counted = ", ".join(f"{number} {words[number != 1]}" for words, number in counts.items())
    return f"{session.title} ({session.created_at:%Y-%m-%d}): {counted}"
