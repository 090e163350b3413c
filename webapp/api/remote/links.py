"""Links for the host's admin, and what came by them."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from webapp.api.remote.command import line, listed, numbered, of, rows, say, with_session
from webapp.api.remote.files import text
from webapp.api.server import DONE, Server

ANSWERS = ("answers", "{id:>5}  {at}  {evidence}")


def links(server: Server, options: argparse.Namespace) -> int:
    """Each with how far it got."""
    for one in server.every(f"{of(options)}/links"):
        steps = [step for step, at in one["steps"].items() if at]
        state = "open" if one["open"] else "closed"
        far = "declined" if one["declined_at"] else steps[-1] if steps else ""
        say(f"{one['id']}  {state:<6}  {far:<10}  {line(one['person'])}")
    return DONE


def make(server: Server, options: argparse.Namespace) -> int:
    """Prints its address, which no later answer has."""
    given = {"purpose": text(options.purpose), "phases": options.phase, "hours": options.hours}
    person = {"person": options.person} if options.person else {}
    asked = given | person | {"may_approve": options.may_approve}
    say(server.post(f"{of(options)}/links", **asked)["address"])
    return DONE


def end(server: Server, options: argparse.Namespace) -> int:
    """Closes it, or accepts what came."""
    now = server.post(f"{of(options)}/links/{quote(options.link, safe='')}/{options.act}")
    say(f"{now['id']}  {'open' if now['open'] else 'closed'}  {line(now['person'])}")
    return DONE


def set_aside(server: Server, options: argparse.Namespace) -> int:
    path = f"{of(options)}/answers/{options.number}/set-aside"
    now = server.post(path, counts=options.counts)
    say(f"{now['evidence']}  {'counts' if now['counts'] else 'does not count'}")
    return DONE


def register(named: Any) -> None:
    with_session(named, "links", links, "the links, and how far each got")
    made = with_session(named, "link", make, "make a link for the host's admin; print its address")
    made.add_argument("--person", default="", help="who it is for")
    made.add_argument("--purpose", default="", help="what for; else the diagnosis says")
    made.add_argument("--hours", type=int, choices=[24, 72, 168, 336], default=72, help="it is open")
    made.add_argument("--phase", action="append", default=[], metavar="Pn", help="offer its scripts, too")
    made.add_argument("--may-approve", action="store_true", help="they may judge what is proposed")
    acts = (("revoke-link", "revoke", "close a link"), ("accept-link", "accept", "accept what came"))
    for name, act, said in acts:
        ended = with_session(named, name, end, said)
        ended.set_defaults(act=act)
        ended.add_argument("link", help="its id, as links lists it")
    rows(with_session(named, "answers", listed, "what came by links"), *ANSWERS)
    aside = numbered(named, "set-aside", set_aside, "say that an answer is not what was asked")
    aside.add_argument("--counts", action="store_true", help="take that back")
