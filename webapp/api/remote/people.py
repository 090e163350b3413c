"""Who you are, your tokens, and accounts, for a token that has the scope people."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from webapp.api.remote.command import add, line, say
from webapp.api.server import DONE, USAGE, Server, StopError

ROLES = ["viewer", "reviewer", "operator", "administrator"]


def me(server: Server, options: argparse.Namespace) -> int:
    found = server.get("/me")
    may = ", ".join(found["scopes"])
    say(f"{line(found['username'])}, {found['role']}. This token may {may} until {found['expires_at']}.")
    return DONE


def tokens(server: Server, options: argparse.Namespace) -> int:
    for one in server.every("/tokens"):
        may, this = ",".join(one["in_effect"]), "  (this one)" if one["asking"] else ""
        say(f"{one['handle']}  {one['expires_at']}  {may}  {line(one['name'])}{this}")
    return DONE


def revoke_token(server: Server, options: argparse.Namespace) -> int:
    server.ask("DELETE", f"/tokens/{quote(options.handle, safe='')}")
    return DONE


def people(server: Server, options: argparse.Namespace) -> int:
    for one in server.every("/people"):
        way_in = "" if one["way_in"] else "  no way in"
        factor = "  second factor" if one["second_factor"] else ""
        invited = "  invited by a program" if one["by_program"] else ""
        say(f"{one['role']:<13}  {line(one['username'])}{factor}{invited}{way_in}")
    return DONE


def invite(server: Server, options: argparse.Namespace) -> int:
    """Prints the address, which no later answer has."""
    say(server.post("/people/invitations", role=options.role)["address"])
    return DONE


def role(server: Server, options: argparse.Namespace) -> int:
    server.send("PUT", _of(server, options.name), role=options.role)
    return DONE


def shut_out(server: Server, options: argparse.Namespace) -> int:
    server.ask("DELETE", _of(server, options.name))
    return DONE


def reset(server: Server, options: argparse.Namespace) -> int:
    server.ask("DELETE", f"{_of(server, options.name)}/second-factor")
    return DONE


def _of(server: Server, name: str) -> str:
    """The path of the person with that name. Raises StopError."""
    for one in server.every("/people"):
        if one["username"] == name:
            return f"/people/{one['id']}"
    raise StopError(USAGE, f"Nobody here is called {name}.")


def register(named: Any) -> None:
    add(named, "me", me, "who the token acts as, and what it may")
    add(named, "tokens", tokens, "your tokens, without their secrets")
    ended = add(named, "revoke-token", revoke_token, "end a token of yours")
    ended.add_argument("handle", help="its middle part, as tokens lists it")
    add(named, "people", people, "who has an account")
    invited = add(named, "invite", invite, "make a link for an account; print its address")
    invited.add_argument("role", choices=ROLES, help="what they may do")
    named_one = add(named, "role", role, "say what somebody may do; lets in who was shut out")
    named_one.add_argument("name", help="theirs")
    named_one.add_argument("role", choices=ROLES, help="in sessions they are added to")
    said = "give somebody no way in any more; what they did stays"
    add(named, "shut-out", shut_out, said).add_argument("name", help="theirs")
    said = "let in somebody else who lost their second factor, by the password alone"
    add(named, "reset-second-factor", reset, said).add_argument("name", help="theirs")
