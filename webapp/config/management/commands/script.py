"""Prints a script: the read-only collector of one role, or one that applies, verifies or undoes a phase."""

import secrets
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from agents.agent import AgentError
from agents.collector import build_script
from agents.facts import View
from agents.probes import all_probes, handed_for
from webapp.diagnosis.option import PHASES
from webapp.diagnosis.scripts import Do, PhaseScript, ScriptError
from webapp.runs.phase_scripts import script_from_sources, script_of_session
from webapp.runs.sources import SourceError


class Command(BaseCommand):
    help = (
        "Print the collector script for a guest or a host: run it there as root, give back what it "
        "prints (`./run diagnose FILE`). It only reads; `sh script.sh --list` says what. With --phase and "
        "--do: the script that applies, verifies or rolls back a phase, from what --from or --session "
        "knows; it is a dry run until it is told --yes."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("role", choices=["guest", "host"], help="the machine it is for")
        parser.add_argument("what", nargs="?", choices=["collect"], default="collect", help="ask, change nothing")
        parser.add_argument("--vmid", type=int, metavar="N", help="the VM under diagnosis")
        parser.add_argument("--probe", action="append", metavar="ID", help="only this probe; may be given again")
        parser.add_argument("--nccl-log", metavar="PATH", help="also read this NCCL log (guest)")
        parser.add_argument("--phase", choices=list(PHASES), help="a script for this phase")
        parser.add_argument("--do", choices=[do.value for do in Do], help="what it does: dry run first")
        known = parser.add_mutually_exclusive_group()
        known.add_argument("--from", nargs="+", dest="sources", metavar="SOURCE", help="as for diagnose")
        known.add_argument("--session", metavar="ID", help="a session that is stored here")

    def handle(self, *args: Any, **options: Any) -> None:
        role = View(options["role"])
        if options["phase"] or options["do"]:
            self.stdout.write(self._phase_script(role, options).text, ending="")
            return
        chosen = list(handed_for(role))
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

    def _phase_script(self, role: View, options: dict[str, Any]) -> PhaseScript:
        if not (options["phase"] and options["do"]):
            self._stop("--phase and --do belong together: --phase P2 --do apply.")
        arguments = {"role": role, **{name: options[name] for name in ("phase", "do", "vmid")}}
        try:
            if options["session"]:
                script = script_of_session(options["session"], **arguments)
            elif options["sources"]:
                script = script_from_sources(options["sources"], **arguments)
            else:
                self._stop("Say what is known of the machine: --from SOURCE… or --session ID.")
        except (ScriptError, SourceError, AgentError) as error:
            self._stop(str(error))
        for sentence in script.left_out:
            self.stderr.write(f"Left out: {sentence}")
        return script

    def _stop(self, message: str) -> NoReturn:
        self.stderr.write(message)
        raise SystemExit(2)
