"""What the evidence carries, the scripts for other hands, and what leaves the session."""

from __future__ import annotations

import argparse
import json
from typing import Any
from urllib.parse import quote, urlencode

from webapp.api.remote.command import line, listed, of, rows, say, whole, with_session
from webapp.api.server import DONE, NOTHING, PARTLY, Server

PLAN = ("plan", "{id:<3}  {role:<5}  {title}  {problem}")
# Read as JSON, for programs and for jq.
AS_JSON = (
    ("facts", "facts", "the facts with their sources, as JSON"),
    ("topology", "topology", "the host's GPUs beside the guest's, as JSON"),
    ("verify", "verification", "before beside after, with “cannot tell”, as JSON"),
    ("changes", "changes", "what changed between two states of the machine, as JSON"),
)


def diagnose(server: Server, options: argparse.Namespace) -> int:
    """The object as `diagnose --json` prints it, or its answer in words."""
    body = server.ask("GET", f"{of(options)}/diagnosis")
    found = json.loads(body)
    if options.json:
        whole(body)
    else:
        say(f"{line(found['headline'])}\n\n{line(found['summary'])}")
    if not found["facts"]:
        return NOTHING
    return PARTLY if found["unrecognised"] else DONE


def as_json(server: Server, options: argparse.Namespace) -> int:
    """before, after: tokens of states, for what compares two."""
    asked = {name: getattr(options, name, None) for name in ("prefix", "before", "after")}
    query = urlencode({name: value for name, value in asked.items() if value})
    say(json.dumps(server.get(f"{of(options)}/{options.path}?{query}"), indent=1))
    return DONE


def script(server: Server, options: argparse.Namespace) -> int:
    role = "guest" if options.phase == "P1" else options.role
    path = f"plan/{quote(options.phase)}/{options.do}" if options.phase else f"scripts/collect/{role}"
    return whole(server.ask("GET", f"{of(options)}/{path}"))


def export(server: Server, options: argparse.Namespace) -> int:
    """To standard output, redacted unless asked otherwise."""
    path = "bundle" if options.form == "bundle" else f"report/{options.form}"
    raw = "?raw=true" if options.raw else ""
    return whole(server.ask("GET", f"{of(options)}/{path}{raw}"))


def hidden(server: Server, options: argparse.Namespace) -> int:
    """By kind and by output, most first."""
    found = server.get(f"{of(options)}/hidden", everything=options.all)
    for one in found["kinds"]:
        outputs = [f"{one['outputs']} outputs"] if one["outputs"] else []
        where = " and ".join([*outputs, *(["the session's own texts"] if one["own"] else [])])
        say(f"{one['places']:>6}  {line(one['kind'])} in {where}")
    for one in found["outputs"]:
        kinds = ", ".join(f"{count} {line(kind)}" for kind, count in one["kinds"].items())
        say(f"{one['evidence']}  {kinds}")
    if found["counted"] < found["total"]:
        say(f"{found['counted']} of {found['total']} outputs were looked at; --all looks at all.")
    return DONE


def register(named: Any) -> None:
    with_session(named, "diagnose", diagnose, "the diagnosis").add_argument(
        "--json", action="store_true", help="peerpath.diagnosis/1"
    )
    for name, path, said in AS_JSON:
        read = with_session(named, name, as_json, said)
        read.set_defaults(path=path)
        if name == "facts":
            read.add_argument("prefix", nargs="?", default="", help="gpu. for some of them")
        if name in {"verify", "changes"}:
            read.add_argument("--before", default="", metavar="STATE", help="else the first")
            read.add_argument("--after", default="", metavar="STATE", help="else the last")
    rows(with_session(named, "plan", listed, "the phases, and why one has no script"), *PLAN)
    _add_leaving(named)


def _add_leaving(named: Any) -> None:
    printed = with_session(named, "script", script, "the script for a machine")
    printed.add_argument("role", choices=["guest", "host"], help="the machine it is for")
    printed.add_argument("--phase", metavar="Pn", default="", help="one that changes something: a phase")
    printed.add_argument("--do", choices=["apply", "verify", "rollback"], default="apply", help="what that does")
    told = with_session(named, "hidden", hidden, "what a redacted export would hide")
    told.add_argument("--all", action="store_true", help="look at long outputs, too")
    taken = with_session(named, "export", export, "the report, or the whole session as a zip")
    taken.add_argument("form", choices=["md", "html", "json", "bundle"], help="as which file")
    taken.add_argument("--raw", action="store_true", help="with names and addresses; else redacted")
