"""`ready`: whether database, migrations, broker and storage are there; health checks of what has no pages."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.operations import health


class Command(BaseCommand):
    help = (
        "Says whether database, migrations, broker and the storage of evidence are there. Exit codes: 0 they"
        " are, or the storage alone is not; 1 not."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        states = health.checks()
        summary = ", ".join(f"{part}: {state}" for part, state in states.items())
        if not health.is_ready(states):
            raise CommandError(summary)
        self.stdout.write(summary + " (degraded)" * health.is_degraded(states))
