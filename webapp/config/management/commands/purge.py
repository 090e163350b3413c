"""`purge --older-than DAYS [--session ID]`: takes raw bytes of outputs away and gives their space back."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from webapp.operations.purge import Purged, forget_outside, give_back, purge
from webapp.records.blob_store import LostError
from webapp.records.models import DiagnosisSession


class Command(BaseCommand):
    help = (
        "Takes away the raw outputs, and the live output of runs, that came more than DAYS days ago."
        " Hashes, readings, decisions and the log stay, and each session's log says what was taken."
        " Sign-ins that have expired go too. There is no way back but a backup."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--older-than", type=int, required=True, metavar="DAYS", help="what came before that")
        parser.add_argument("--session", type=UUID, metavar="ID", help="of this session alone")
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")
        parser.add_argument(
            "--full",
            action="store_true",
            help="PostgreSQL: give the space back to the disk; locks the tables meanwhile",
        )

    def handle(self, *, older_than: int, session: UUID | None, dry_run: bool, full: bool, **_: Any) -> None:
        if not 0 <= older_than <= 36_500:
            raise CommandError("DAYS is a number from 0 to 36500.", returncode=2)
        only = DiagnosisSession.objects.filter(pk=session).first() if session else None
        if session and only is None:
            raise CommandError(f"There is no session {session}.", returncode=2)
        now = timezone.now()
        done: list[Purged] = []
        for one in purge(now - timedelta(days=older_than), only=only, dry_run=dry_run):
            done.append(one)
            self.stdout.write(f"{one.session.pk} {one.session.title}: {one.evidence} outputs, {one.size_bytes:,} bytes")
        if not dry_run:
            Session.objects.filter(expire_date__lt=now).delete()
            give_back(whole=full)
        outputs, size = sum(one.evidence for one in done), sum(one.size_bytes for one in done)
        what = "would go" if dry_run else "are gone"
        self.stdout.write(f"{outputs} outputs of {len(done)} sessions {what}, {size:,} bytes")
        if not dry_run:
            _forget_outside()


def _forget_outside() -> None:
    try:
        forget_outside()
    except LostError as error:
        raise CommandError(f"{error} It is tried again by the next purge.") from error
