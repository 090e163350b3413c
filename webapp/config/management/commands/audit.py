"""Checks the hash chains of all events, or prints a session's events."""

import json
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.records.event_log import broken, exported
from webapp.records.models import DiagnosisSession


class Command(BaseCommand):
    help = "Checks the chain of every session's events, or prints them, one JSON line each."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("do", choices=("verify", "export"), help="check, or print")
        parser.add_argument("--session", type=UUID, help="only this session")

    def handle(self, *args: Any, **options: Any) -> None:
        sessions = DiagnosisSession.objects.order_by("created_at")
        if options["session"]:
            sessions = sessions.filter(pk=options["session"])
            if not sessions.exists():
                raise CommandError(f"There is no session {options['session']}.", returncode=2)
        if options["do"] == "export":
            for session in sessions:
                for row in exported(session):
                    self.stdout.write(json.dumps(row, sort_keys=True))
            return
        self._verify(list(sessions))

    def _verify(self, sessions: list[DiagnosisSession]) -> None:
        altered = [(session, problem) for session in sessions if (problem := broken(session))]
        for session, problem in altered:
            self.stderr.write(f"{session.pk} {session.title}: {problem}")
        events = sum(session.events.count() for session in sessions)
        if altered:
            raise CommandError(f"{len(altered)} of {len(sessions)} sessions were altered.", returncode=1)
        self.stdout.write(f"{events} events of {len(sessions)} sessions: every chain is whole.")
