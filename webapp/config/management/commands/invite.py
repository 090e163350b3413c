"""Prints a one-time link that makes an account."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from webapp.accounts.models import OneTimeLink


class Command(BaseCommand):
    help = "Print a one-time link; with --admin it makes an administrator."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--admin", action="store_true", help="an administrator's")

    def handle(self, *args: Any, **options: Any) -> None:
        _, token = OneTimeLink.make(makes_admin=options["admin"])
        self.stdout.write(f"{settings.PUBLIC_URL}/welcome/{token}")
