"""Django's `migrate`, which leaves a database of the schema before 0.1.0 alone and says what to do."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from webapp.operations.carry_over import is_of_before


class Command(migrate.Command):
    def handle(self, *arguments: Any, **options: Any) -> None:
        if is_of_before():
            raise CommandError(
                "This database was made by a version before 0.1.0. Run `./run carry-over` once: it keeps every session"
                " and account, and leaves the old tables beside the new ones."
            )
        super().handle(*arguments, **options)
