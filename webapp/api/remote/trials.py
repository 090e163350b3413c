"""An A/B of one option on one measurement: its plan, its next step, what the runs say so far."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from webapp.api.remote.command import line, of, say, with_session
from webapp.api.remote.files import read
from webapp.api.remote.machines import followed, only_target
from webapp.api.server import DONE, Server


def trial(server: Server, options: argparse.Namespace) -> int:
    return _told(server.get(f"{_of(options)}?{urlencode(_arms(options))}"))


def run_step(server: Server, options: argparse.Namespace) -> int:
    """Starts it, and follows it."""
    target = options.target or only_target(server, options)
    asked = _arms(options) | {"step": options.step, "target": target, "yes": options.yes}
    made = server.post(f"{_of(options)}/runs", **asked)
    return followed(server, f"{of(options)}/runs/{made['id']}")


def give_step(server: Server, options: argparse.Namespace) -> int:
    printed = read(options.file).decode(errors="replace")
    asked = _arms(options) | {"step": options.step, "text": printed}
    return _told(server.post(f"{_of(options)}/results", **asked))


def _of(options: argparse.Namespace) -> str:
    option, benchmark = (quote(one, safe="") for one in (options.option, options.benchmark))
    return f"{of(options)}/trials/{option}/{benchmark}"


def _arms(options: argparse.Namespace) -> dict[str, Any]:
    return {"runs": options.runs, "set": options.set}


def _told(found: dict[str, Any]) -> int:
    for step in found["steps"]:
        done = "measured" if step["measured"] else "next" if step["number"] == found["next"] else ""
        switch = "  switch first" if step["switch"] and not step["measured"] else ""
        say(f"{step['number']:>3}  arm {step['arm']}  {done:<8}{switch}".rstrip())
    if found["line"]:
        say(line(found["line"]))
    if found["waits_for_approval"]:
        say("Arm B is tried once a decision for it was approved.")
    if verified := found["verified"]:
        for part in (verified["comparability"], verified["comparison"]):
            said = str(part.get("verdict") or part["outcome"]).replace("_", " ")
            say(f"{said}: {line(part['why'])}")
    if found["drifted"]:
        say("It drifted while it was tried.")
    return DONE


def register(named: Any) -> None:
    _arm(named, "ab", trial, "an A/B of one option: its steps, and what they say so far")
    ran = _arm(named, "ab-run", run_step, "run the next step of an A/B, and follow it")
    given = _arm(named, "ab-give", give_step, "give what the next step printed where you ran it")
    for one in (ran, given):
        one.add_argument("step", type=int, help="the next one's number")
    ran.add_argument("--target", type=int, metavar="N", help="which machine; needless with one")
    ran.add_argument("--yes", action="store_true", help="its arm is in place; load the machine")
    given.add_argument("file", type=Path, help="or - for standard input")


def _arm(named: Any, name: str, command: Any, said: str) -> argparse.ArgumentParser:
    made = with_session(named, name, command, said)
    made.add_argument("option", help="the id of what is tried")
    made.add_argument("benchmark", help="the id of what is measured")
    made.add_argument("--runs", type=int, default=5, metavar="N", help="of each arm")
    made.add_argument("--set", default="", metavar="NAME=VALUE", help="what arm B sets by itself")
    return made
