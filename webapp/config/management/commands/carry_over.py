"""`carry-over`: brings a data folder of the schema before 0.1.0 to this one. Once."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.operations.carry_over import CarryOverError, carry_over
from webapp.sealing import SealError


class Command(BaseCommand):
    help = (
        "Carries a database over from the schema before 0.1.0, with every session, account and second factor."
        " Stop pages, workers and reconciler first. The old tables are left beside the new ones."
    )
    requires_system_checks = ()

    def handle(self, **_: Any) -> None:
        try:
            rows = carry_over()
        except (CarryOverError, SealError) as error:
            raise CommandError(f"Nothing was carried over. {error}") from error
        self.stdout.write(f"Carried over: {sum(rows.values())} rows of {sum(map(bool, rows.values()))} tables.")
