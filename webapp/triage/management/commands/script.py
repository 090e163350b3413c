"""Prints the read-only collector script of one role."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.collector import build_script
from agents.facts import View
from agents.probes import all_probes, probes_for


class Command(BaseCommand):
    help = (
        "Print the collector script for a guest or a host: run it there as root, give back what it "
        "prints (`./run diagnose FILE`). It only reads; `sh script.sh --list` says what."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("role", choices=["guest", "host"])
        parser.add_argument("what", nargs="?", choices=["collect"], default="collect")
        parser.add_argument("--vmid", type=int, metavar="N", help="the VM under diagnosis")
        parser.add_argument(
            "--probe", action="append", metavar="ID", help="only this probe; may be given again"
        )
        parser.add_argument("--nccl-log", metavar="PATH", help="also read this NCCL log (guest)")
        parser.add_argument("--phase", help="not in this version: only the collector is generated")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["phase"]:
            self._stop("Scripts that apply a phase are not part of this version; only collect is.")
        role = View(options["role"])
        chosen = list(probes_for(role))
        if options["probe"]:
            known = {p.id: p for p in all_probes().values() if p.role is role}
            wrong = [name for name in options["probe"] if name not in known]
            if wrong:
                self._stop(f"No such {role} probe: {', '.join(wrong)}. Known: {', '.join(known)}")
            chosen = [known[name] for name in options["probe"]]
        arguments = {"VMID": str(options["vmid"])} if options["vmid"] else {}
        if options["nccl_log"]:
            arguments["NCCL_LOG"] = options["nccl_log"]
            chosen.append(all_probes()["guest.nccl_log"])
        try:
            text = build_script(chosen, role=role, nonce=secrets.token_hex(8), arguments=arguments)
        except ValueError as error:
            self._stop(str(error))
        self.stdout.write(text, ending="")

    def _stop(self, message: str) -> None:
        self.stderr.write(message)
        raise SystemExit(2)
