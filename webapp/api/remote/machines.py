"""Machines: adding one, accepting its key, running things there and following them."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from webapp.api.remote.command import add, line, listed, numbered, of, rows, say, with_session
from webapp.api.server import DONE, FAILED, PARTLY, UNREACHABLE, USAGE, Server, StopError

OF_A_SESSION = (
    ("runs", "{number:>3}  {state:<10}  {kind:<9}  {waits_for}", "the runs, and what a queued one waits for"),
    ("targets", "{id:>5}  {role:<5}  {agent:<5}  {host:<30}  {port:>5}  {user}", "the machines that can be reached"),
    ("benchmarks", "{id:<16}  {title}. {cost}", "what can be measured"),
)
POLL_S = 1.0


def add_target(server: Server, options: argparse.Namespace) -> int:
    """Prints its number."""
    fields: dict[str, Any] = {"role": options.role, **_place(options.machine)}
    for name in ("stored_key", "identity_file", "jump"):
        fields |= {name: value} if (value := getattr(options, name)) else {}
    say(str(server.post(f"{of(options)}/targets", **fields)["id"]))
    return DONE


def _place(machine: str) -> dict[str, Any]:
    """Of ssh://user@host:port or local:. Raises StopError."""
    if machine == "local:":
        return {"agent": "local"}
    parts = urlsplit(machine)
    try:
        place = {"host": parts.hostname or "", "port": parts.port or 22}
    except ValueError:
        place = {"host": ""}
    if parts.scheme != "ssh" or not place["host"]:
        raise StopError(USAGE, f"{machine} is no machine: ssh://root@gpu-vm:22, or local:")
    return place | ({"user": parts.username} if parts.username else {})


def run(server: Server, options: argparse.Namespace) -> int:
    """Starts it, and follows it."""
    fields: dict[str, Any] = {"target": options.target or only_target(server, options)}
    if options.what != "probes":
        choices = dict(_choice(given) for given in options.set)
        fields |= {"benchmark": options.what, "yes": options.yes, "choices": choices}
    elif options.only:
        fields["probes"] = options.only
    made = server.post(f"{of(options)}/runs", **fields)
    return followed(server, f"{of(options)}/runs/{made['id']}")


def _choice(given: str) -> tuple[str, str]:
    name, sign, value = given.partition("=")
    if not sign:
        raise StopError(USAGE, f"--set {given}: write NAME=VALUE")
    return name, value


def follow(server: Server, options: argparse.Namespace) -> int:
    """Its output from the beginning, as `run` prints it."""
    return followed(server, _run_of(server, options))


def cancel(server: Server, options: argparse.Namespace) -> int:
    asked = server.post(f"{_run_of(server, options)}/cancel")
    going = "" if asked["ended_at"] else ", its end is asked for"
    say(f"Run {asked['number']}: {asked['state']}{going}.")
    return DONE


def again(server: Server, options: argparse.Namespace) -> int:
    """Starts the same once more, and follows it."""
    made = server.post(f"{_run_of(server, options)}/again", yes=options.yes)
    return followed(server, f"{of(options)}/runs/{made['id']}")


def _run_of(server: Server, options: argparse.Namespace) -> str:
    """The path of the run with that number. Raises StopError."""
    for one in server.every(f"{of(options)}/runs"):
        if one["number"] == options.number:
            return f"{of(options)}/runs/{one['id']}"
    raise StopError(USAGE, f"There is no run {options.number} in this session.")


def followed(server: Server, path: str) -> int:
    """Prints its output until it ended; the code says how."""
    offset = 0
    while True:
        got = server.get(f"{path}/output", offset=offset)
        sys.stdout.write(got["text"])
        sys.stdout.flush()
        if got["ended"] and got["next_offset"] == offset:
            break
        if got["next_offset"] == offset:
            time.sleep(POLL_S)
        offset = got["next_offset"]
    ended = server.get(path)
    sys.stderr.write(f"Run {ended['number']}: {ended['state']}. {line(ended['problem'])}\n")
    codes = {"succeeded": DONE, "partly": PARTLY, "failed": UNREACHABLE}
    return codes.get(ended["state"], FAILED)


def _address(target: dict[str, Any]) -> str:
    if target["agent"] == "local":
        return "the server itself"
    return line("{user}@{host}:{port}".format(**target))


def only_target(server: Server, options: argparse.Namespace) -> int:
    found = list(server.every(f"{of(options)}/targets"))
    if len(found) == 1:
        return int(found[0]["id"])
    said = ", ".join(f"{one['id']} ({one['role']} {_address(one)})" for one in found)
    raise StopError(USAGE, f"Which machine? --target N; there are: {said or 'none'}.")


def register(named: Any) -> None:
    for name, row, said in OF_A_SESSION:
        rows(with_session(named, name, listed, said), name, row)
    probes = add(named, "probes", listed, "the read-only questions that a machine can be asked")
    rows(probes, "probes", "{id:<30}  {role:<5}  {title}")
    added = with_session(named, "add-target", add_target, "add a machine, and print its number")
    added.add_argument("role", choices=["guest", "host"], help="what it is")
    added.add_argument("machine", help="ssh://user@host:port, or local: for the server itself")
    added.add_argument("--stored-key", default="", metavar="ID", help="one of keys")
    added.add_argument("--identity-file", default="", metavar="PATH", help="where Peerpath runs")
    added.add_argument("--jump", default="", metavar="HOSTS", help="user@host:port, commas between")
    _add_runs(named)


def _add_runs(named: Any) -> None:
    started = with_session(named, "run", run, "run probes, or a benchmark by its id, and follow it")
    started.add_argument("what", help="probes, or a benchmark's id")
    started.add_argument("--target", type=int, metavar="N", help="which machine; needless with one")
    started.add_argument("--only", action="append", default=[], metavar="PROBE", help="again for more")
    started.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a benchmark's choice")
    once_more = numbered(named, "again", again, "run the same once more, as a run that ended did")
    for loading in (started, once_more):
        loading.add_argument("--yes", action="store_true", help="the machine may be loaded now")
    numbered(named, "follow", follow, "print a run's output until it ended")
    numbered(named, "cancel", cancel, "ask for a run's end")
