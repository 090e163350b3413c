"""Says which probe each part of some text answers, one JSON line a part."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.facts import View
from webapp.runs.outputs import read_sources
from webapp.runs.sources import Access, SourceError, gather


class Command(BaseCommand):
    help = "Print which probe each part of these files (or - for standard input) answers."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", nargs="+", help="a file, a folder, or - for standard input")
        parser.add_argument("--role", choices=["guest", "host"], help="whose outputs these are")

    def handle(self, *args: Any, **options: Any) -> None:
        role = View(options["role"]) if options["role"] else None
        try:
            collected = read_sources(gather(options["path"], Access()), role)
        except SourceError as error:
            self.stderr.write(str(error))
            raise SystemExit(2 if error.usage else 4) from error
        for output in collected.outputs:
            for item in output.reading.items:
                first, last = item.lines or (1, 1)
                line = {
                    "source": output.name,
                    "lines": [first, last],
                    "probe": item.reader,
                    "confidence": round(item.confidence, 2),
                }
                self.stdout.write(json.dumps(line, ensure_ascii=False))
        if not collected.recognised:
            names = ", ".join(Path(o.name).name for o in collected.outputs)
            self.stderr.write(f"Nothing was recognised in {names}.")
            raise SystemExit(3)
