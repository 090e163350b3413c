"""`./run remote URL CMD …`: the same commands against a server. Standard library only, so that it runs
where nothing is installed.

The token comes from PEERPATH_TOKEN, or from a file that only its owner can read; never from the command
line, where every process of the machine could see it.
"""

from __future__ import annotations

import argparse
import http.client
import ipaddress
import json
import os
import ssl
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

DONE, FAILED, USAGE, NOTHING, UNREACHABLE, PARTLY = 0, 1, 2, 3, 4, 5
TIMEOUT_S = 120
POLL_S = 1.0


class StopError(Exception):
    """Ends the command with this exit code and sentence."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


class Server:
    """One Peerpath, asked as the token's owner."""

    def __init__(self, parts: SplitResult, token: str) -> None:
        self.parts, self.token = parts, token

    def ask(self, method: str, path: str, body: bytes = b"", media_type: str = "") -> bytes:
        """The answer's body. Raises StopError for every refusal."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if body:
            headers["Content-Type"] = media_type
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid.uuid4())
        try:
            status, answer = self._exchange(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise StopError(UNREACHABLE, f"{self.parts.netloc}: {error}") from error
        if status >= 300:
            raise StopError(_code(status), _detail(status, answer))
        return answer

    def _exchange(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        host, port = self.parts.hostname or "", self.parts.port
        connection = (
            http.client.HTTPSConnection(
                host, port, timeout=TIMEOUT_S, context=ssl.create_default_context()
            )
            if self.parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        )
        try:
            prefix = self.parts.path.rstrip("/")
            connection.request(method, f"{prefix}/api/v1{path}", body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path: str, **query: Any) -> Any:
        return json.loads(self.ask("GET", f"{path}?{urlencode(query)}" if query else path))

    def post(self, path: str, **fields: Any) -> Any:
        body = json.dumps(fields).encode() if fields else b""
        return json.loads(self.ask("POST", path, body, "application/json"))

    def every(self, path: str) -> Iterator[dict[str, Any]]:
        """All rows of a list, page by page."""
        cursor = ""
        while True:
            found = self.get(path, limit=200, **({"cursor": cursor} if cursor else {}))
            yield from found["items"]
            cursor = found["next"]
            if not cursor:
                return


def _code(status: int) -> int:
    if status in {400, 404, 409, 413, 415, 422}:
        return USAGE
    return UNREACHABLE if status in {401, 403, 429, 502, 503, 504} else FAILED


def _detail(status: int, answer: bytes) -> str:
    try:
        return str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered {status}, and it is no Peerpath or too old for this."


def main(argv: list[str]) -> int:
    options = command_line().parse_args(argv)
    command: Callable[[Server, argparse.Namespace], int] = options.command
    try:
        return command(Server(_address(options), _token(options.token_file)), options)
    except StopError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.code
    except BrokenPipeError:
        return FAILED
    except KeyboardInterrupt:
        return 130


def _address(options: argparse.Namespace) -> SplitResult:
    """Raises StopError for what is no address, and for one that would show the token on the way."""
    parts: SplitResult = urlsplit(options.url)
    try:
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        raise StopError(USAGE, f"{options.url} is no address: https://peerpath.example")
    if parts.scheme == "http" and not (options.plain or _is_here(parts.hostname or "")):
        raise StopError(
            USAGE, "Over http everybody on the way can read the token: use https, or add --plain."
        )
    return parts


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token(path: Path | None) -> str:
    """Raises StopError, also for a file that others can read."""
    if path is None:
        text = os.environ.get("PEERPATH_TOKEN", "")
        if not text:
            raise StopError(USAGE, "Set PEERPATH_TOKEN, or name a file: --token-file FILE.")
        return _checked(text)
    try:
        with path.open() as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise StopError(USAGE, f"Others can read {path}: chmod 600 {path}")
            return _checked(file.read(1000))
    except (OSError, UnicodeDecodeError) as error:
        raise StopError(USAGE, f"{path} cannot be read: {error}") from error


def _checked(text: str) -> str:
    text = text.strip()
    if not text.isascii() or not text.isprintable() or not text:
        raise StopError(USAGE, "That is no token; it begins with peerpath_.")
    return text


def sessions(server: Server, options: argparse.Namespace) -> int:
    for one in server.every("/sessions"):
        _say(f"{one['id']}  {one['my_role']:<13}  {_line(one['title'])}")
    return DONE


def open_session(server: Server, options: argparse.Namespace) -> int:
    _say(server.post("/sessions", title=options.title)["id"])
    return DONE


def paste(server: Server, options: argparse.Namespace) -> int:
    """A file, or standard input for "-"."""
    is_input = str(options.file) == "-"
    try:
        raw = sys.stdin.buffer.read() if is_input else options.file.read_bytes()
    except OSError as error:
        raise StopError(USAGE, f"{options.file}: {error.strerror}") from error
    name = "a paste" if is_input else options.file.name
    about = urlencode({"role": options.role or "", "hide": options.hide})
    body, media_type = _form(name, raw)
    answer = server.ask("POST", f"{_of(options)}/evidence/files?{about}", body, media_type)
    got = json.loads(answer)
    for given in got["given"]:
        for part in given["understood"]:
            where = "{}-{}".format(*part["lines"]) if part["lines"] else "whole"
            _say(f"{given['evidence']}  {where:>11}  {part['reader']}")
    for note in got["notes"]:
        sys.stderr.write(f"{_line(note)}\n")
    if not got["recognised"]:
        return NOTHING
    return PARTLY if any(given["unplaced"] for given in got["given"]) else DONE


def _form(name: str, raw: bytes) -> tuple[bytes, str]:
    """A multipart/form-data body with one file (RFC 7578) and its media type."""
    mark = f"peerpath-{uuid.uuid4().hex}"
    quoted = "".join("_" if c in '"\\\r\n' else c for c in name)
    head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n\r\n'
    body = b"".join([head.encode(errors="replace"), raw, f"\r\n--{mark}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={mark}"


def run(server: Server, options: argparse.Namespace) -> int:
    """Starts it, prints its output as it comes, and ends as it ended."""
    target = options.target or _only_target(server, options)
    fields: dict[str, Any] = {"target": target}
    if options.what != "probes":
        fields |= {"benchmark": options.what, "yes": options.yes}
    made = server.post(f"{_of(options)}/runs", **fields)
    path, offset = f"{_of(options)}/runs/{made['id']}", 0
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
    sys.stderr.write(f"Run {ended['number']}: {ended['state']}. {_line(ended['problem'])}\n")
    codes = {"succeeded": DONE, "partly": PARTLY, "failed": UNREACHABLE}
    return codes.get(ended["state"], FAILED)


def _only_target(server: Server, options: argparse.Namespace) -> int:
    found = list(server.every(f"{_of(options)}/targets"))
    if len(found) == 1:
        return int(found[0]["id"])
    said = ", ".join(f"{one['id']} ({one['role']} {_line(one['host'])})" for one in found)
    raise StopError(USAGE, f"Which machine? --target N; there are: {said or 'none'}.")


def diagnose(server: Server, options: argparse.Namespace) -> int:
    """The object as `diagnose --json` prints it, or its answer in words."""
    body = server.ask("GET", f"{_of(options)}/diagnosis")
    found = json.loads(body)
    if options.json:
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
    else:
        _say(f"{_line(found['headline'])}\n\n{_line(found['summary'])}")
    if not found["facts"]:
        return NOTHING
    return PARTLY if found["unrecognised"] else DONE


def script(server: Server, options: argparse.Namespace) -> int:
    role = "guest" if options.phase == "P1" else options.role
    path = (
        f"plan/{quote(options.phase)}/{options.do}" if options.phase else f"scripts/collect/{role}"
    )
    sys.stdout.buffer.write(server.ask("GET", f"{_of(options)}/{path}"))
    sys.stdout.buffer.flush()
    return DONE


def decisions(server: Server, options: argparse.Namespace) -> int:
    path = f"{_of(options)}/decisions" if options.session else "/decisions"
    for one in server.every(path):
        _say(f"{one['session']}  {one['number']:>3}  {one['state']:<10}  {_line(one['title'])}")
    return DONE


def _of(options: argparse.Namespace) -> str:
    return f"/sessions/{quote(options.session, safe='')}"


def _line(text: str) -> str:
    """One line that a terminal does not obey: what a machine or a person wrote is in it."""
    return "".join(c if c.isprintable() else " " for c in text)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run remote",
        description="The commands against a server.",
        epilog="Exit codes: 0 done, 1 the server failed, 2 usage, 3 nothing recognised, "
        "4 unreachable or refused, 5 partly.",
    )
    parser.add_argument("url", help="https://peerpath.example")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="mode 0600; else PEERPATH_TOKEN"
    )
    parser.add_argument("--plain", action="store_true", help="send the token over http")
    named = parser.add_subparsers(required=True, metavar="CMD", help="one of those below")
    _add(named, "sessions", sessions, "the sessions you may see")
    _add(named, "open", open_session, "open a session").add_argument("title", help="of the case")
    pasted = _with_session(
        named, "paste", paste, "give a file, an archive, or - for standard input"
    )
    pasted.add_argument("file", type=Path, help="or - for standard input")
    pasted.add_argument("--role", choices=["guest", "host"], help="whose outputs these are")
    pasted.add_argument("--hide", action="store_true", help="replace names and addresses first")
    started = _with_session(named, "run", run, "run probes, or a benchmark by its id")
    started.add_argument("what", help="probes, or a benchmark's id")
    started.add_argument("--target", type=int, metavar="N", help="which machine; needless with one")
    started.add_argument("--yes", action="store_true", help="the machine may be loaded now")
    _with_session(named, "diagnose", diagnose, "the diagnosis").add_argument(
        "--json", action="store_true", help="peerpath.diagnosis/1"
    )
    printed = _with_session(named, "script", script, "the script for a machine")
    printed.add_argument("role", choices=["guest", "host"], help="the machine it is for")
    printed.add_argument(
        "--phase", metavar="Pn", default="", help="one that changes something: a phase"
    )
    printed.add_argument(
        "--do", choices=["apply", "verify", "rollback"], default="apply", help="what that does"
    )
    listed = _add(named, "decisions", decisions, "the decisions, of one session or of all")
    listed.add_argument("session", nargs="?", default="", help="its id")
    return parser


def _add(named: Any, name: str, command: Callable[..., int], said: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = named.add_parser(name, help=said, description=said)
    made.set_defaults(command=command)
    return made


def _with_session(
    named: Any, name: str, command: Callable[..., int], said: str
) -> argparse.ArgumentParser:
    made = _add(named, name, command, said)
    made.add_argument("session", help="its id")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
