"""Outputs: giving them, looking at them, saying what lines are."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from webapp.api.remote.command import line, listed, of, rows, say, whole, with_session
from webapp.api.remote.files import form, read
from webapp.api.server import DONE, NOTHING, PARTLY, Server

EVIDENCE = ("evidence", "{name:<44}  {size_bytes:>9}  {label}")


def paste(server: Server, options: argparse.Namespace) -> int:
    name = "a paste" if str(options.file) == "-" else options.file.name
    body, media_type = form("file", name, read(options.file))
    about = urlencode({"role": options.role or "", "hide": options.hide})
    got = server.sent("POST", f"{of(options)}/evidence/files?{about}", body, media_type)
    for given in got["given"]:
        for part in given["understood"]:
            where = "{}-{}".format(*part["lines"]) if part["lines"] else "whole"
            say(f"{given['evidence']}  {where:>11}  {part['reader']}")
        for first, last in given["unplaced"]:
            sys.stderr.write(f"{given['evidence']}  nobody knows lines {first}-{last}\n")
    for note in got["notes"]:
        sys.stderr.write(f"{line(note)}\n")
    if not got["recognised"]:
        return NOTHING
    return PARTLY if any(given["unplaced"] for given in got["given"]) else DONE


def show(server: Server, options: argparse.Namespace) -> int:
    """The bytes as they came, or its lines with some words."""
    path = f"{of(options)}/evidence/{quote(options.name, safe='')}"
    if options.find:
        found = list(server.every(f"{path}/find", words=options.find))
        for one in found:
            say(f"{one['number']:>6}  {line(one['text'])}")
        return DONE if found else NOTHING
    return whole(server.ask("GET", f"{path}/raw?{urlencode({'redacted': options.redacted})}"))


def assign(server: Server, options: argparse.Namespace) -> int:
    path = f"{of(options)}/evidence/{quote(options.name, safe='')}/lines"
    fields = {"reader": options.reader, "view": options.role or "", "take_back": options.take_back}
    say(line(server.post(path, first=options.first, last=options.last, **fields)["said"]))
    return DONE


def reread(server: Server, options: argparse.Namespace) -> int:
    found = server.post(f"{of(options)}/reread")
    say(f"{found['read']} read, {len(found['changed'])} read differently.")
    for what in ("facts", "verdicts"):
        for one in found[what]:
            say(f"{what[:-1]}  {line(one)}")
    return DONE


def register(named: Any) -> None:
    said = "give a file, an archive, or - for standard input"
    pasted = with_session(named, "paste", paste, said)
    pasted.add_argument("file", type=Path, help="or - for standard input")
    pasted.add_argument("--role", choices=["guest", "host"], help="whose outputs these are")
    pasted.add_argument("--hide", action="store_true", help="replace names and addresses first")
    rows(with_session(named, "evidence", listed, "the outputs, the newest first"), *EVIDENCE)
    shown = _of_one(named, "show", show, "one output as it came")
    shown.add_argument("--find", default="", metavar="WORDS", help="only lines with these words")
    shown.add_argument("--redacted", action="store_true", help="without names and addresses")
    meant = _of_one(named, "assign", assign, "say what lines are that nobody could place")
    meant.add_argument("first", type=int, help="line")
    meant.add_argument("last", type=int, help="line")
    meant.add_argument("--reader", default="", metavar="ID", help="what printed them, as probes has it")
    meant.add_argument("--role", choices=["guest", "host"], help="whose they are")
    meant.add_argument("--take-back", action="store_true", help="what was said counts no more")
    with_session(named, "reread", reread, "apply the server's newest parsers to what is stored")


def _of_one(named: Any, name: str, command: Any, said: str) -> argparse.ArgumentParser:
    made = with_session(named, name, command, said)
    made.add_argument("name", help="of the output, as evidence lists it")
    return made
