"""`restore FILE`: puts back what `backup` copied, brings it up to date, and checks every chain of events."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from webapp.operations import backup


class Command(BaseCommand):
    help = (
        "Puts a copy that `backup` made back and brings it up to date with this version. Stop pages,"
        " workers and reconciler first. Refuses where there are sessions, unless --replace is given."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="what `backup` made")
        parser.add_argument("--replace", action="store_true", help="what is there now is lost")

    def handle(self, *, file: Path, replace: bool, **_: Any) -> None:
        if not replace and not backup.is_empty():
            raise CommandError("There are sessions here, which would be lost; if so, add --replace.")
        try:
            backup.put_back(file)
        except (backup.BackupError, DatabaseError) as error:
            raise CommandError(f"Nothing was put back. {error}") from error
        call_command("migrate", verbosity=0, interactive=False)
        call_command("audit", "verify", stdout=self.stdout, stderr=self.stderr)
