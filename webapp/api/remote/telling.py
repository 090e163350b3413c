"""Who is told what happens: you by mail, programs by webhooks; and what does not move by itself."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from webapp.api.remote.command import add, line, say
from webapp.api.server import DONE, Server


def notices(server: Server, options: argparse.Namespace) -> int:
    """All kinds, those chosen with a cross; with some named, those alone from now on."""
    path, chosen = "/notices", options.kind
    found = server.send("PUT", path, kinds=chosen) if chosen else server.get(path)
    for one in found["kinds"]:
        say(f"{'x' if one['chosen'] else ' '}  {one['id']:<20}  {line(one['title'])}")
    return DONE


def webhooks(server: Server, options: argparse.Namespace) -> int:
    for one in server.every(_of(options)):
        state = "" if one["stands"] else "  stopped"
        say(f"{one['id']}  {','.join(one['kinds'])}  {line(one['url'])}{state}")
    return DONE


def add_webhook(server: Server, options: argparse.Namespace) -> int:
    """Prints its id and its secret, which no later answer has."""
    made = server.post(_of(options), url=options.receiver, kinds=options.kind)
    say(f"{made['id']}  {made['secret']}")
    return DONE


def remove_webhook(server: Server, options: argparse.Namespace) -> int:
    server.ask("DELETE", f"{_of(options)}/{quote(options.webhook, safe='')}")
    return DONE


def _of(options: argparse.Namespace) -> str:
    return f"/sessions/{quote(options.session, safe='')}/webhooks" if options.session else "/webhooks"


def stuck(server: Server, options: argparse.Namespace) -> int:
    found = server.get("/stuck")
    for name in ("silent", "waiting"):
        for one in found[name]:
            say(f"{name:<8} {one['run']}  run {one['number']} of {one['session']}, {one['state']}")
    for one in found["unread"]:
        say(line(f"unread   {one['ref']} of {one['session']}  {one['title']}"))
    return DONE


def unstick(server: Server, options: argparse.Namespace) -> int:
    now = server.post(f"/stuck/runs/{quote(options.run, safe='')}/{options.act}")
    say(f"Run {now['number']}: {now['state']}.")
    return DONE


def register(named: Any) -> None:
    told = add(named, "notices", notices, "what you are told of by mail, or choose it anew")
    told.add_argument("kind", nargs="*", help="all that you want from now on")
    hooks = add(named, "webhooks", webhooks, "the programs that are told what happens")
    more = add(named, "add-webhook", add_webhook, "tell a program; print its id and secret")
    more.add_argument("receiver", help="its address, https://…")
    more.add_argument("kind", nargs="+", help="of news, as notices lists them")
    less = add(named, "remove-webhook", remove_webhook, "tell a program nothing any more")
    less.add_argument("webhook", help="its id")
    for one in (hooks, more, less):
        one.add_argument("--session", default="", help="its id; else of all, for administrators")
    add(named, "stuck", stuck, "what does not move by itself; for administrators")
    for name, act, said in (
        ("send-again", "send", "send a queued run to the workers again"),
        ("end-lost", "end", "end a run whose worker went silent"),
    ):
        moved = add(named, name, unstick, said)
        moved.set_defaults(act=act)
        moved.add_argument("run", help="its id, as stuck lists it")
