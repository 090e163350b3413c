"""Sessions: which there are, opening one, who is in it, what waits."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from webapp.api.remote.command import add, line, listed, of, rows, say, whole, with_session
from webapp.api.remote.files import form, read, text
from webapp.api.server import DONE, USAGE, Server, StopError

SESSIONS = ("sessions", "{id}  {my_role:<13}  {title}")
ROLES = ("viewer", "reviewer", "operator")
KINDS = ("session", "finding", "decision", "run", "evidence", "comment")


def open_session(server: Server, options: argparse.Namespace) -> int:
    say(server.post("/sessions", title=options.title)["id"])
    return DONE


def sample(server: Server, options: argparse.Namespace) -> int:
    say(server.post("/sessions/sample", stage=options.stage)["id"])
    return DONE


def open_bundle(server: Server, options: argparse.Namespace) -> int:
    body, media_type = form("bundle", options.file.name, read(options.file))
    say(server.sent("POST", "/sessions/bundle", body, media_type)["id"])
    return DONE


def describe(server: Server, options: argparse.Namespace) -> int:
    """Changes what is given; the rest stays."""
    texts = {name: getattr(options, name) for name in ("title", "symptom", "own_words")}
    fields: dict[str, Any] = {name: text(said) for name, said in texts.items() if said}
    plain = {"first_hypothesis": options.hypothesis, "vmid": options.vmid}
    fields |= {name: value for name, value in plain.items() if value}
    if options.workload:
        fields["workload"] = _workload(options.workload)
    server.change("PATCH", of(options), of(options), fields)
    return DONE


def _workload(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StopError(USAGE, f"{path} is no TOML: {error}") from error


def observed(server: Server, options: argparse.Namespace) -> int:
    path = f"{of(options)}/observed"
    server.change("POST", of(options), path, {"evidence": options.evidence})
    return DONE


def what_next(server: Server, options: argparse.Namespace) -> int:
    found = server.get(f"{of(options)}/standing")
    say(line(found["headline"]))
    for one in (found["next"], *found["also"]):
        cost = f" ({line(one['cost'])})" if one["cost"] else ""
        say(f"{line(one['actor'])}: {line(one['text'])}{cost}")
    return DONE


def search(server: Server, options: argparse.Namespace) -> int:
    query = {"q": " ".join(options.words)} | ({"kind": options.kind} if options.kind else {})
    for one in server.every("/search", **query):
        say(line("{session}  {kind:<8}  {ref}  {title}".format(**one)))
    return DONE


def member(server: Server, options: argparse.Namespace) -> int:
    path = f"{of(options)}/members/{quote(options.name, safe='')}"
    if options.role == "remove":
        server.ask("DELETE", path)
    else:
        server.send("PUT", path, role=options.role)
    return DONE


def quorum(server: Server, options: argparse.Namespace) -> int:
    server.send("PUT", f"{of(options)}/quorum", quorum=options.people)
    return DONE


def for_me(server: Server, options: argparse.Namespace) -> int:
    waits = server.get("/for-me")
    for one in waits["to_judge"]:
        say(f"{one['session']}  judge decision {one['decision']}: {line(one['title'])}")
    for one in waits["to_accept"]:
        say(f"{one['session']}  accept what {line(one['person'])} gave")
    for one in waits["asked"]:
        say(f"{one['comment']['session']}  measure {line(one['test'])}")
    for one in _unseen(server, "/words"):
        what = f"{one['word']} decision {one['decision']}: {one['reason']}"
        say(line(f"{one['session']}  {one['who']} {what}"))
    for one in _unseen(server, "/mentions"):
        say(line(f"{one['session']}  {one['author']} named you: {one['text']}"))
    if options.seen:
        server.ask("POST", "/for-me/seen")
    return DONE


def _unseen(server: Server, path: str) -> list[dict[str, Any]]:
    return [one for one in server.get(path, limit=50)["items"] if one["seen_at"] is None]


def get(server: Server, options: argparse.Namespace) -> int:
    """For what has no command of its own."""
    if not options.path.startswith("/"):
        raise StopError(USAGE, "A path begins with a slash: /sessions, as /help/api has them.")
    return whole(server.ask("GET", options.path))


def register(named: Any) -> None:
    rows(add(named, "sessions", listed, "the sessions you may see"), *SESSIONS)
    add(named, "open", open_session, "open a session").add_argument("title", help="of the case")
    walk = add(named, "sample", sample, "open a walk through the founding case")
    stages = ["first", "guest", "host", "after"]
    walk.add_argument("--stage", choices=stages, default="after", help="as it was known then")
    bundle = add(named, "open-bundle", open_bundle, "open a bundle as a session, and print its id")
    bundle.add_argument("file", type=Path, help="the zip file that export bundle gave")
    _add_describing(named)
    with_session(named, "next", what_next, "what is next in a session, and who acts")
    found = add(named, "search", search, "sessions, findings, decisions and so on with these words")
    found.add_argument("words", nargs="+", help="each has to begin one of the text's")
    found.add_argument("--kind", choices=KINDS, help="only these")
    _add_people(named)
    waits = add(named, "for-me", for_me, "what waits for you, and what was said to you")
    waits.add_argument("--seen", action="store_true", help="and that you saw it")
    got = add(named, "get", get, "the answer of any GET that the API has")
    got.add_argument("path", help="below /api/v1, with its query: /sessions?limit=5")


def _add_describing(named: Any) -> None:
    said = "say what is served, how fast it is, and what you think it is"
    told = with_session(named, "describe", describe, said)
    told.add_argument("--workload", type=Path, metavar="FILE", help="TOML, as for diagnose")
    told.add_argument("--title", default="", help="of the case")
    told.add_argument("--symptom", default="", help="in words; - for standard input")
    told.add_argument("--hypothesis", default="", metavar="ID", help="your first one")
    told.add_argument("--own-words", default="", help="what you think it is")
    told.add_argument("--vmid", type=int, metavar="N", help="of the VM on its host")
    measured = with_session(named, "use-measured", observed, "take a measured load as what is seen")
    measured.add_argument("evidence", help="an output with points of a load")


def _add_people(named: Any) -> None:
    said = "who is in the session, and as what"
    rows(with_session(named, "members", listed, said), "members", "{role:<8}  {username}")
    changed = with_session(named, "member", member, "add a person, change their role, or remove them")
    changed.add_argument("name", help="theirs, here")
    changed.add_argument("role", choices=[*ROLES, "remove"], help="what they may do in it")
    said = "say how many others approve a change on the host"
    needed = with_session(named, "quorum", quorum, said)
    needed.add_argument("people", type=int, help="from 0 to 9")
    said = "every act in it, the oldest first"
    rows(with_session(named, "log", listed, said), "events", "{number:>5}  {at}  {who:<20}  {kind}")
