"""What people say and decide: comments, records, others' words, what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from webapp.api.remote.command import add, line, lines, listed, numbered, of, rows, say, with_session
from webapp.api.remote.files import text
from webapp.api.server import DONE, USAGE, Server, StopError

DECISIONS = ("decisions", "{session}  {number:>3}  {state:<12}  {title}")
COMMENTS = ("comments", "{id:>5}  {author:<16}  {stance:<8}  {anchor}  {text}")
WORDS: dict[str, dict[str, bool]] = {
    "approve": {"approves": True},
    "reject": {"approves": False},
    "changes": {"approves": False, "changes_wanted": True},
    "withdraw": {"approves": False, "withdrawn": True},
}
MOVES = (
    ("propose", "ask the others for their word on a draft"),
    ("withdraw", "take a proposal back to a draft"),
    ("renew", "pin today's evidence to a proposal, and ask again"),
    ("apply", "say that it was carried out; evidence from now on is “after”"),
)
ENDS = ["verified", "no_effect", "not_verified", "reverted"]


def comment(server: Server, options: argparse.Namespace) -> int:
    """Prints its number, by which it is answered."""
    fields: dict[str, Any] = {"text": text(options.text), "anchor": options.about}
    if options.reply_to:
        fields |= {"reply_to": options.reply_to, "anchor": _thread(server, options)}
    say(str(server.post(f"{of(options)}/comments", stance=options.stance, **fields)["id"]))
    return DONE


def _thread(server: Server, options: argparse.Namespace) -> str:
    """What the answered comment is about. Raises StopError."""
    for one in server.every(f"{of(options)}/comments"):
        if one["id"] == options.reply_to:
            return str(one["anchor"])
    raise StopError(USAGE, f"There is no comment {options.reply_to} in this session.")


def draft(server: Server, options: argparse.Namespace) -> int:
    fields = {"chosen": options.option, "reason": text(options.reason), "title": options.title}
    if options.instead:
        fields["supersedes"] = options.instead
    fields["unsafe_understood"] = options.unsafe_understood
    path = f"{of(options)}/decisions"
    if options.again:
        one = f"{path}/{options.again}"
        made = server.change("PATCH", one, one, fields)
    else:
        made = server.post(path, **fields)
    say(str(made["number"]))
    return DONE


def move(server: Server, options: argparse.Namespace) -> int:
    return _said(server.post(f"{_record(options)}/{options.move}"))


def judge(server: Server, options: argparse.Namespace) -> int:
    fields = {"reason": text(options.reason), "despite_disputes": options.despite_disputes}
    word = WORDS[options.word]
    return _said(server.post(f"{_record(options)}/judge", **word, **fields, seen=options.seen))


def close(server: Server, options: argparse.Namespace) -> int:
    fields = {"state": options.state, "outcome": text(options.outcome)}
    states = {"before": options.before, "after": options.after}
    return _said(server.post(f"{_record(options)}/close", **fields, **states))


def _record(options: argparse.Namespace) -> str:
    return f"{of(options)}/decisions/{options.number}"


def _said(now: dict[str, Any]) -> int:
    waits = f", {now['needed']} to approve it" if now["state"] == "proposed" else ""
    say(f"{now['number']}  {now['state']}{waits}")
    return DONE


def record(server: Server, options: argparse.Namespace) -> int:
    """As its page shows it; what a word on it may name is told on standard error."""
    body = server.ask("GET", f"{_record(options)}/madr?raw=true").decode()
    now = server.get(_record(options))
    say(lines(body).rstrip("\n"))
    sys.stderr.write(f"{now['state']}; judge it as you read it with --seen {now['content_sha256']}\n")
    return DONE


def versions(server: Server, options: argparse.Namespace) -> int:
    """All with their words, or one with its text."""
    path = f"{_record(options)}/versions"
    if options.version:
        say(json.dumps(server.get(f"{path}/{options.version}"), indent=2))
        return DONE
    for one in server.every(path):
        say(f"{one['number']:>3}  {one['at']}  {line(one['proposed_by'])}")
        for word in one["words"]:
            say(f"     {word['word']}  {line(word['who'])}: {line(word['reason'])}")
    return DONE


def register(named: Any) -> None:
    rows(with_session(named, "comments", listed, "what was said, the oldest first"), *COMMENTS)
    said = with_session(named, "comment", comment, "say something, and print its number")
    said.add_argument("text", help="or - for standard input; @name tells somebody")
    said.add_argument("--about", default="", metavar="THING", help="finding:ID, run:N, decision:N…")
    stances = ["agree", "dispute", "resolve", "reopen"]
    said.add_argument(
        "--stance", choices=stances, default="", help="resolve and reopen answer somebody; the others do not"
    )
    said.add_argument("--reply-to", type=int, metavar="N", help="of its thread's first comment")
    all_of = add(named, "decisions", listed, "the decisions, of one session or of all")
    rows(all_of, *DECISIONS).add_argument("session", nargs="?", default="", help="its id")
    _add_writing(named)
    _add_judging(named)


def _add_writing(named: Any) -> None:
    drafted = with_session(named, "draft", draft, "draft a decision, and print its number")
    drafted.add_argument("option", nargs="+", help="ids of the options that are chosen")
    drafted.add_argument("--reason", required=True, help="why these; - for standard input")
    drafted.add_argument("--title", default="", help="else the options' own")
    drafted.add_argument("--again", type=int, metavar="N", help="write this draft anew")
    drafted.add_argument("--instead", type=int, metavar="N", help="of the record it replaces")
    drafted.add_argument("--unsafe-understood", action="store_true", help="you read why an option is unsafe")
    for name, meaning in MOVES:
        numbered(named, name, move, meaning).set_defaults(move=name)
    ended = numbered(named, "close", close, "say what came of it, by what the two states show")
    ended.add_argument("state", choices=ENDS, help="how it ends")
    ended.add_argument("--outcome", required=True, help="in words; - for standard input")
    ended.add_argument("--before", default="", metavar="STATE", help="as verify has them")
    ended.add_argument("--after", default="", metavar="STATE", help="as verify has them")


def _add_judging(named: Any) -> None:
    numbered(named, "record", record, "one decision in words")
    given = numbered(named, "judge", judge, "give your word on what somebody proposed")
    given.add_argument("word", choices=list(WORDS), help="your newest word counts")
    given.add_argument("--reason", default="", help="- for standard input")
    given.add_argument("--seen", default="", metavar="HASH", help="of the text that you read")
    given.add_argument("--despite-disputes", action="store_true", help="you know what is disputed on it")
    kept = numbered(named, "versions", versions, "a decision as it was proposed each time")
    kept.add_argument("version", type=int, nargs="?", help="one of them, with its text, as JSON")
