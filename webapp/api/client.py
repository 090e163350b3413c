"""`./run remote URL CMD …`: the same commands against a server. Standard library only, so that it runs
where nothing is installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from webapp.api.remote import (
    decisions,
    evidence,
    groups,
    keys,
    links,
    machines,
    people,
    reasoning,
    sessions,
    telling,
    trials,
)
from webapp.api.remote.command import Command
from webapp.api.server import FAILED, Server, StopError, address, token_from

# As --help lists them.
TOPICS = (*(sessions, evidence, machines, keys, groups, reasoning, decisions, trials, links), *(people, telling))


def main(argv: list[str]) -> int:
    options = command_line().parse_args(argv)
    command: Command = options.command
    try:
        where = address(options.url, plain=options.plain)
        return command(Server(where, token_from(options.token_file)), options)
    except StopError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.code
    except BrokenPipeError:
        return FAILED
    except KeyboardInterrupt:
        return 130


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run remote",
        description="The commands against a server.",
        epilog="Exit codes: 0 done, 1 the server failed, 2 usage, 3 nothing recognised, "
        "4 unreachable or refused, 5 partly.",
    )
    parser.add_argument("url", help="https://peerpath.example")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="mode 0600; else PEERPATH_TOKEN")
    parser.add_argument("--plain", action="store_true", help="send the token over http")
    named = parser.add_subparsers(required=True, metavar="CMD", help="one of those below")
    for topic in TOPICS:
        topic.register(named)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
