"""`./run remote URL CMD …`: the same commands against a server. Standard library only, so that it runs
where nothing is installed."""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from webapp.api.server import (
    DONE,
    FAILED,
    NOTHING,
    PARTLY,
    UNREACHABLE,
    USAGE,
    Server,
    StopError,
    address,
    token_from,
)

# Where rows are, and the line of one.
SESSIONS = ("sessions", "{id}  {my_role:<13}  {title}")
KEYS = ("keys", "{id}  {fingerprint}  {kind}  {name}")
DECISIONS = ("decisions", "{session}  {number:>3}  {state:<12}  {title}")
OF_A_SESSION = (
    (
        "runs",
        "{number:>3}  {state:<10}  {kind:<9}  {waits_for}",
        "the runs, and what a queued one waits for",
    ),
    ("targets", "{id:>5}  {role:<5}  {agent:<5}  {host}", "the machines that can be reached"),
    ("benchmarks", "{id:<16}  {title}. {cost}", "what can be measured"),
)
POLL_S = 1.0


def main(argv: list[str]) -> int:
    options = command_line().parse_args(argv)
    command: Callable[[Server, argparse.Namespace], int] = options.command
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


def listed(server: Server, options: argparse.Namespace) -> int:
    """A line for each row that can be used, with what `options.line` names of it."""
    where = _of(options) if getattr(options, "session", "") else ""
    for one in server.every(f"{where}/{options.rows}"):
        if one.get("usable", True):
            _say(_line(options.line.format(**one)))
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
    """Starts it, and follows it."""
    target = options.target or _only_target(server, options)
    fields: dict[str, Any] = {"target": target}
    if options.what != "probes":
        fields |= {"benchmark": options.what, "yes": options.yes}
    made = server.post(f"{_of(options)}/runs", **fields)
    return _followed(server, f"{_of(options)}/runs/{made['id']}")


def follow(server: Server, options: argparse.Namespace) -> int:
    """Its output from the beginning, as `run` prints it."""
    return _followed(server, _run_of(server, options))


def cancel(server: Server, options: argparse.Namespace) -> int:
    asked = server.post(f"{_run_of(server, options)}/cancel")
    going = "" if asked["ended_at"] else ", its end is asked for"
    _say(f"Run {asked['number']}: {asked['state']}{going}.")
    return DONE


def again(server: Server, options: argparse.Namespace) -> int:
    """Starts the same once more, and follows it."""
    made = server.post(f"{_run_of(server, options)}/again", yes=options.yes)
    return _followed(server, f"{_of(options)}/runs/{made['id']}")


def _run_of(server: Server, options: argparse.Namespace) -> str:
    """The path of the run with that number. Raises StopError."""
    for one in server.every(f"{_of(options)}/runs"):
        if one["number"] == options.number:
            return f"{_of(options)}/runs/{one['id']}"
    raise StopError(USAGE, f"There is no run {options.number} in this session.")


def _followed(server: Server, path: str) -> int:
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


def export(server: Server, options: argparse.Namespace) -> int:
    """To standard output, redacted unless asked otherwise."""
    path = "bundle" if options.form == "bundle" else f"report/{options.form}"
    raw = "?raw=true" if options.raw else ""
    sys.stdout.buffer.write(server.ask("GET", f"{_of(options)}/{path}{raw}"))
    sys.stdout.buffer.flush()
    return DONE


def draft(server: Server, options: argparse.Namespace) -> int:
    path = f"{_of(options)}/decisions"
    made = server.post(path, chosen=options.option, reason=options.reason, title=options.title)
    _say(str(made["number"]))
    return DONE


def propose(server: Server, options: argparse.Namespace) -> int:
    now = server.post(f"{_of(options)}/decisions/{options.number}/propose")
    _say(f"{now['number']}  {now['state']}, {now['needed']} to approve it")
    return DONE


def versions(server: Server, options: argparse.Namespace) -> int:
    """All with their words, or one with its text."""
    path = f"{_of(options)}/decisions/{options.number}/versions"
    if options.version:
        _say(json.dumps(server.get(f"{path}/{options.version}"), indent=2))
        return DONE
    for one in server.every(path):
        _say(f"{one['number']:>3}  {one['at']}  {_line(one['proposed_by'])}")
        for word in one["words"]:
            _say(f"     {word['word']}  {_line(word['who'])}: {_line(word['reason'])}")
    return DONE


def for_me(server: Server, options: argparse.Namespace) -> int:
    waits = server.get("/for-me")
    for one in waits["to_judge"]:
        _say(f"{one['session']}  judge decision {one['decision']}: {_line(one['title'])}")
    for one in waits["to_accept"]:
        _say(f"{one['session']}  accept what {_line(one['person'])} gave")
    for one in waits["asked"]:
        _say(f"{one['comment']['session']}  measure {_line(one['test'])}")
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
    _rows(_add(named, "sessions", listed, "the sessions you may see"), *SESSIONS)
    _rows(_add(named, "keys", listed, "the stored SSH keys that you may connect with"), *KEYS)
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
    once_more = _numbered(named, "again", again, "run the same once more, as a run that ended did")
    for loading in (started, once_more):
        loading.add_argument("--yes", action="store_true", help="the machine may be loaded now")
    _numbered(named, "follow", follow, "print a run's output until it ended")
    _numbered(named, "cancel", cancel, "ask for a run's end")
    for name, line, said in OF_A_SESSION:
        _rows(_with_session(named, name, listed, said), name, line)
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
    taken = _with_session(named, "export", export, "the report, or the whole session as a zip")
    taken.add_argument("form", choices=["md", "html", "json", "bundle"], help="as which file")
    taken.add_argument("--raw", action="store_true", help="with names and addresses; else redacted")
    _deciding(named)
    _add(named, "for-me", for_me, "what waits for you")
    return parser


def _deciding(named: Any) -> None:
    all_of = _add(named, "decisions", listed, "the decisions, of one session or of all")
    _rows(all_of, *DECISIONS).add_argument("session", nargs="?", default="", help="its id")
    drafted = _with_session(named, "draft", draft, "draft a decision, and print its number")
    drafted.add_argument("option", nargs="+", help="ids of the options that are chosen")
    drafted.add_argument("--reason", required=True, help="why these")
    drafted.add_argument("--title", default="", help="else the options' own")
    _numbered(named, "propose", propose, "ask the others for their word on a draft")
    kept = _numbered(named, "versions", versions, "a decision as it was proposed each time")
    kept.add_argument("version", type=int, nargs="?", help="one of them, with its text, as JSON")


def _rows(made: argparse.ArgumentParser, rows: str, line: str) -> argparse.ArgumentParser:
    made.set_defaults(rows=rows, line=line)
    return made


def _numbered(
    named: Any, name: str, command: Callable[..., int], said: str
) -> argparse.ArgumentParser:
    made = _with_session(named, name, command, said)
    made.add_argument("number", type=int, help="its number in the session")
    return made


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
