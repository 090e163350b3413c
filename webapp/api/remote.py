"""`./run remote ADDRESS COMMAND …`: a few commands against a Peerpath elsewhere, with the token in PEERPATH_TOKEN.
Standard library alone: this file runs by itself where Python 3.11 is and Peerpath is not."""

import argparse
import http.client
import json
import os
import re
import sys
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, urlencode

DONE, FAILED, USAGE, NOTHING, UNREACHABLE, PARTLY = 0, 1, 2, 3, 4, 5
CODES = "Exit codes: 0 done, 1 the server failed, 2 usage, 3 nothing recognised, 4 unreachable or refused, 5 partly."
EXIT_CODES = dict.fromkeys((400, 404, 409, 412, 413, 415, 422), USAGE)  # by the status of an answer
EXIT_CODES |= dict.fromkeys((401, 403, 429, 502, 503, 504), UNREACHABLE)
ADDRESS = re.compile(r"(https?)://([\w.-]+|\[[\da-fA-F:]+\])(?::[1-9]\d{0,4})?(?:/[\w./~-]*)?", re.ASCII)
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
TIMEOUT_S, POLL_S = 120, 1.0


class StopError(Exception):
    """Ends the command. args: the exit code and a sentence."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to the address that was named, and nowhere else; through no proxy of the environment, either."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)


class Server(NamedTuple):
    """One Peerpath, asked as the token's owner. url: as `address_of` checked it."""

    url: str
    token: str

    def ask(self, path: str, body: bytes | None = None, media_type: str = "application/json") -> bytes:
        """The answer's body, to a POST where something is sent. Raises StopError for every refusal."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": media_type}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", body, headers)  # noqa: S310
        try:
            with OPENER.open(request, timeout=TIMEOUT_S) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            raise StopError(EXIT_CODES.get(error.code, FAILED), _detail(error)) from error
        except (OSError, http.client.HTTPException) as error:
            raise StopError(UNREACHABLE, f"{self.url}: {getattr(error, 'reason', error)}") from error

    def json(self, path: str, **fields: Any) -> Any:
        """A GET without fields, else a POST of them."""
        return json.loads(self.ask(path, json.dumps(fields).encode() if fields else None))


def _detail(error: HTTPError) -> str:
    try:
        return printable(str(json.loads(error.read())["detail"]))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return f"The server answered {error.code}, and it is no Peerpath or too old for this."


def address_of(url: str, *, plain: bool) -> str:
    """Raises StopError for what is no address, and, unless `plain`, for one over which others can read the token."""
    match = ADDRESS.fullmatch(url)
    if match is None:
        raise StopError(USAGE, f"{printable(url)} is no address: https://peerpath.example")
    if match[1] == "http" and not (plain or match[2] in LOOPBACK):
        raise StopError(USAGE, "Over http everybody on the way can read the token: use https, or add --plain.")
    return url.rstrip("/")


def printable(text: str) -> str:
    """What a machine or a person wrote, in one line that a terminal does not obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def new(server: Server, _: str, options: argparse.Namespace) -> int:
    """open a session, and print its id"""
    sys.stdout.write(server.json("/sessions", title=options.title)["id"] + "\n")
    return DONE


def paste(server: Server, session: str, options: argparse.Namespace) -> int:
    """give a file, an archive, or - for standard input"""
    try:
        content = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        raise StopError(USAGE, f"{options.file}: {error.strerror}") from error
    boundary = f"peerpath-{uuid.uuid4().hex}"
    name = "a paste" if options.file == "-" else "".join("_" if c in '"\\\r\n' else c for c in Path(options.file).name)
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = b"".join([head.encode(errors="replace"), content, f"\r\n--{boundary}--\r\n".encode()])
    path = f"{session}/evidence/files?{urlencode({'role': options.role, 'hide': options.hide})}"
    answer = json.loads(server.ask(path, body, f"multipart/form-data; boundary={boundary}"))
    for output in answer["given"]:
        for part in output["understood"]:
            where = "{}-{}".format(*part["lines"]) if part["lines"] else "whole"
            sys.stdout.write(f"{output['evidence']}  {where:>11}  {part['reader']}\n")
        for first, last in output["unplaced"]:
            sys.stderr.write(f"{output['evidence']}  nobody knows lines {first}-{last}\n")
    for note in answer["notes"]:
        sys.stderr.write(f"{printable(note)}\n")
    unplaced = any(output["unplaced"] for output in answer["given"])
    return (PARTLY if unplaced else DONE) if answer["recognised"] else NOTHING


def run(server: Server, session: str, options: argparse.Namespace) -> int:
    """run probes, or a benchmark by its id, and print the output; the exit code says how it ended"""
    what = {} if options.what == "probes" else {"benchmark": options.what, "yes": options.yes}
    run_id = server.json(f"{session}/runs", target=options.target or _only_target(server, session), **what)["id"]
    offset, goes_on = 0, True
    while goes_on:
        output = server.json(f"{session}/runs/{run_id}/output?offset={offset}")
        sys.stdout.write(output["text"])
        sys.stdout.flush()
        has_more = output["next_offset"] > offset
        goes_on, offset = has_more or not output["ended"], output["next_offset"]
        time.sleep(POLL_S if goes_on and not has_more else 0)
    ended = server.json(f"{session}/runs/{run_id}")
    sys.stderr.write(f"Run {ended['number']}: {ended['state']}. {printable(ended['problem'])}\n")
    return {"succeeded": DONE, "partly": PARTLY, "failed": UNREACHABLE}.get(ended["state"], FAILED)


def _only_target(server: Server, session: str) -> int:
    targets = server.json(f"{session}/targets?limit=200")["items"]
    if len(targets) == 1:
        return int(targets[0]["id"])
    listed = ", ".join(printable("{id} ({role} {agent} {user}@{host}:{port})".format(**one)) for one in targets)
    raise StopError(USAGE, f"Which machine? --target N; there are: {listed or 'none'}.")


def diagnosis(server: Server, session: str, options: argparse.Namespace) -> int:
    """print the answer, or the whole diagnosis as JSON"""
    body = server.ask(f"{session}/diagnosis")
    answer = json.loads(body)
    text = f"{printable(answer['headline'])}\n\n{printable(answer['summary'])}\n"
    sys.stdout.buffer.write(body if options.json else text.encode())
    return (PARTLY if answer["unrecognised"] else DONE) if answer["facts"] else NOTHING


def export(server: Server, session: str, options: argparse.Namespace) -> int:
    """print the report, or the whole session as a zip"""
    form = "bundle" if options.form == "bundle" else f"report/{options.form}"
    sys.stdout.buffer.write(server.ask(f"{session}/{form}{'?raw=true' if options.raw else ''}"))
    return DONE


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run remote", description="Commands against a server.", epilog=CODES)
    parser.add_argument("url", metavar="ADDRESS", help="https://peerpath.example")
    parser.add_argument("--plain", action="store_true", help="send the token over http")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", help="one of those below")
    added: dict[str, argparse.ArgumentParser] = {}
    for command in (new, paste, run, diagnosis, export):
        added[command.__name__] = commands.add_parser(command.__name__, help=command.__doc__)
        added[command.__name__].set_defaults(command=command)
    added["new"].add_argument("title", help="of the case")
    for name in added.keys() - {"new"}:
        added[name].add_argument("session", help="its id")
    added["paste"].add_argument("file", help="or - for standard input")
    added["paste"].add_argument("--role", choices=["guest", "host"], default="", help="whose outputs these are")
    added["paste"].add_argument("--hide", action="store_true", help="replace names and addresses first")
    added["run"].add_argument("what", help="probes, or a benchmark's id")
    added["run"].add_argument("--target", type=int, metavar="N", help="which machine; needless with one")
    added["run"].add_argument("--yes", action="store_true", help="the machine may be loaded now")
    added["diagnosis"].add_argument("--json", action="store_true", help="peerpath.diagnosis/1")
    added["export"].add_argument("form", choices=["md", "json", "bundle"], help="as which file")
    added["export"].add_argument("--raw", action="store_true", help="with names and addresses; else redacted")
    return parser


def main(argv: list[str]) -> int:
    options = command_line().parse_args(argv)
    session = "/sessions/" + quote(getattr(options, "session", ""), safe="")
    token = os.environ.get("PEERPATH_TOKEN", "").strip()
    try:
        if not (token.startswith("peerpath_") and token.isascii() and token.isprintable()):
            raise StopError(USAGE, "Set PEERPATH_TOKEN to a token from “Your account”; it begins with peerpath_.")
        return int(options.command(Server(address_of(options.url, plain=options.plain), token), session, options))
    except StopError as end:
        code, sentence = end.args
        sys.stderr.write(f"{sentence}\n")
        return int(code)
    except (BrokenPipeError, KeyboardInterrupt):
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
