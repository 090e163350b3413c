"""Diagnoses a machine, or outputs of one, on the command line."""

import tomllib
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.agent import AgentError
from agents.facts import View
from webapp.diagnosis.diagnosis import diagnose
from webapp.presenting.diagnosis_json import as_json
from webapp.presenting.diagnosis_text import as_text
from webapp.records.redaction import RedactionError
from webapp.records.redaction_on_intake import Hiding
from webapp.runs.cli_target import Keys
from webapp.runs.outputs import Collected, facts_from, merged, read_sources
from webapp.runs.saving import save_as_session
from webapp.runs.sources import Access, SourceError, gather

USAGE, NOTHING, UNREACHABLE, PARTLY = 2, 3, 4, 5


class Command(BaseCommand):
    help = (
        "Diagnose SOURCE…: ssh://user@host:port, local:, a file or folder of outputs, a collector's "
        "output, sample:kpro6[@first|@guest|@host|@after], or - for standard input. "
        "Exit codes: 0 done, 2 usage, 3 nothing recognised, 4 unreachable or key refused, 5 partly."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", nargs="*", default=[], metavar="SOURCE", help="one or more of those above")
        parser.add_argument("--role", choices=["guest", "host"], help="whose outputs these are")
        parser.add_argument("--vmid", type=int, help="the VM under diagnosis")
        parser.add_argument("--workload", type=Path, metavar="FILE.toml", help="model, speed and goal")
        parser.add_argument("--identity", type=Path, metavar="FILE", help="private key for ssh://")
        parser.add_argument("--known-hosts", type=Path, metavar="FILE", help="host keys to trust")
        parser.add_argument("--json", action="store_true", help="print peerpath.diagnosis/1")
        parser.add_argument("--save", action="store_true", help="keep it as a session")
        parser.add_argument(
            "--redact", action="store_true", help="hide names, addresses and serials in what is printed and kept"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["source"] and not options["workload"]:
            self._stop(USAGE, "Give a source: ssh://user@host, local:, a path, sample:kpro6 or -.")
        role = View(options["role"]) if options["role"] else None
        collected = self._collected(options, role)
        if collected.hidden:
            self.stderr.write(collected.hidden.report())
        for note in collected.notes():
            self.stderr.write(note)
        if not collected.recognised:
            self._stop(
                NOTHING,
                "Nothing was recognised. Whole outputs with the command line above "
                "them are recognised best; `./run recognise` shows what was seen.",
            )
        try:
            result = diagnose(facts_from(collected), vmid=options["vmid"])
        except ValueError as error:
            self._stop(USAGE, f"The workload cannot be used: {error}")
        unrecognised = collected.unrecognised()
        text = as_json(result, unrecognised) if options["json"] else as_text(result, unrecognised, collected.names())
        self.stdout.write(text)
        if options["save"]:
            self.stderr.write(save_as_session(collected, vmid=options["vmid"]))
        if collected.partly:
            raise SystemExit(PARTLY)

    def _collected(self, options: dict[str, Any], role: View | None) -> Collected:
        keys = Keys(options["identity"], options["known_hosts"])
        access = Access(role or View.GUEST, keys)
        try:
            hiding = Hiding() if options["redact"] else None
            collected = read_sources(gather(options["source"], access), role, hiding)
            if options["workload"]:
                tables = tomllib.loads(options["workload"].read_text(encoding="utf-8"))
                collected.tables = merged(collected.tables, tables)
        except SourceError as error:
            self._stop(USAGE if error.usage else UNREACHABLE, str(error))
        except (AgentError, RedactionError) as error:
            self._stop(UNREACHABLE, str(error))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self._stop(USAGE, f"{options['workload']}: {error}")
        return collected

    def _stop(self, code: int, message: str) -> None:
        self.stderr.write(message)
        raise SystemExit(code)
