"""What the commands share: how they are added to the parser, and how they print. Standard library only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from webapp.api.server import DONE, Server

Command = Callable[[Server, argparse.Namespace], int]


def add(named: Any, name: str, command: Command, said: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = named.add_parser(name, help=said, description=said)
    made.set_defaults(command=command)
    return made


def with_session(named: Any, name: str, command: Command, said: str) -> argparse.ArgumentParser:
    made = add(named, name, command, said)
    made.add_argument("session", help="its id")
    return made


def numbered(named: Any, name: str, command: Command, said: str) -> argparse.ArgumentParser:
    made = with_session(named, name, command, said)
    made.add_argument("number", type=int, help="its number in the session")
    return made


def rows(made: argparse.ArgumentParser, path: str, line: str) -> argparse.ArgumentParser:
    """For `listed`: where rows are, and the line of one."""
    made.set_defaults(rows=path, line=line)
    return made


def listed(server: Server, options: argparse.Namespace) -> int:
    """A line for each row that can be used, with what `options.line` names of it."""
    where = of(options) if getattr(options, "session", "") else ""
    for one in server.every(f"{where}/{options.rows}"):
        if one.get("usable", True):
            say(line(options.line.format(**one)).rstrip())
    return DONE


def of(options: argparse.Namespace) -> str:
    """The session's path."""
    return f"/sessions/{quote(options.session, safe='')}"


def line(text: str) -> str:
    """One line that a terminal does not obey: what a machine or a person wrote is in it."""
    return "".join(c if c.isprintable() else " " for c in text)


def lines(text: str) -> str:
    """The same of a text, whose lines stay."""
    return "\n".join(line(one) for one in text.split("\n"))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def whole(body: bytes) -> int:
    """An answer as it is, for a file or another program."""
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()
    return DONE
