"""`reread [--session N]`: applies today's parsers to stored evidence."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.triage import intake
from webapp.triage.models import DiagnosisSession


class Command(BaseCommand):
    help = "Reads stored evidence again with today's parsers. Raw evidence is never changed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--session", metavar="N", help="only this session's evidence")

    def handle(self, *, session: str | None, **_: Any) -> None:
        read, changed = intake.reread(_find(session) if session else None)
        self.stdout.write(f"{read} pieces of evidence read, {changed} now read differently")


def _find(session: str) -> DiagnosisSession:
    try:
        return DiagnosisSession.objects.get(pk=session)
    except (DiagnosisSession.DoesNotExist, ValidationError):
        raise CommandError(f"there is no session {session}") from None
