"""Machines that are compared with each other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from webapp.api.remote.command import line, of, say, with_session
from webapp.api.remote.files import read
from webapp.api.server import DONE, Server


def add_machines(server: Server, options: argparse.Namespace) -> int:
    known = read(options.known_hosts).decode(errors="replace") if options.known_hosts else ""
    fields: dict[str, Any] = {"machines": options.machine, "known_hosts": known}
    for name in ("stored_key", "identity_file", "jump"):
        fields |= {name: value} if (value := getattr(options, name)) else {}
    made = server.post(f"{of(options)}/machines", **fields)
    say(f"{made['added']} added; the host keys of {made['pinned']} are accepted")
    return DONE


def run_all(server: Server, options: argparse.Namespace) -> int:
    for one in server.post(f"{of(options)}/machines/runs"):
        say(f"{one['number']:>3}  {one['state']}  machine {one['target']}")
    return DONE


def machines(server: Server, options: argparse.Namespace) -> int:
    """Each trait with what is usual, and who differs in what."""
    found = server.get(f"{of(options)}/machines")
    for trait in found["traits"]:
        say(f"{line(trait['title'])}: {line(trait['usual'])}")
    for name, titles in found["odd"].items():
        say(f"{line(name)} differs in {line(', '.join(titles))}")
    return DONE


def register(named: Any) -> None:
    more = with_session(named, "add-machines", add_machines, "add machines that are compared")
    more.add_argument("machine", nargs="+", help="host, user@host or user@host:port")
    more.add_argument("--known-hosts", type=Path, metavar="FILE", help="keys that you vouch for")
    more.add_argument("--stored-key", default="", metavar="ID", help="one of keys")
    more.add_argument("--identity-file", default="", metavar="PATH", help="where Peerpath runs")
    more.add_argument("--jump", default="", metavar="HOSTS", help="on the way, with commas")
    with_session(named, "run-all", run_all, "run the probes on every machine of the group")
    with_session(named, "machines", machines, "the group side by side, and the odd one out")
