"""`backup FILE`: a copy of the whole database, while it is in use."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.operations import backup


class Command(BaseCommand):
    help = (
        "Copies the whole database into FILE, which must not exist; it may be in use meanwhile. Keys"
        " and evidence outside the database are not in it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="must not exist yet")

    def handle(self, *, file: Path, **_: Any) -> None:
        try:
            backup.save(file)
        except backup.BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{file}: {file.stat().st_size:,} bytes")
        where = f"in the settings and in {settings.DATA_DIR}"
        self.stdout.write(f"Not in it: the keys {where}. Keep them elsewhere.")
        if "evidence" in settings.STORAGES:
            self.stdout.write("Not in it: the evidence at PEERPATH_EVIDENCE_URL.")
