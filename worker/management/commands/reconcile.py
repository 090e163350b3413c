"""`reconcile [--once]`: ends runs whose worker died and sends lost messages again."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from worker import reconciler


class Command(BaseCommand):
    help = "Ends runs whose worker died, and sends messages again that got lost. Runs until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="one pass, then end")

    def handle(self, *, once: bool, **_: Any) -> None:
        if once:
            lost, sent = reconciler.reconcile_once()
            self.stdout.write(f"{lost} runs were lost, {sent} messages were sent again")
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        reconciler.reconcile_until(stop)
