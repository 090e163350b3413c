"""SSH keys: those that are stored for people, and those by which machines are known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from webapp.api.remote.command import add, line, listed, of, rows, say, with_session
from webapp.api.remote.files import read
from webapp.api.server import DONE, UNREACHABLE, Server

KEYS = ("keys", "{id}  {fingerprint}  {kind}  {name}")


def store(server: Server, options: argparse.Namespace) -> int:
    """Prints its id. Secrets come from files, which no other account's `ps` shows."""
    fields: dict[str, Any] = {"name": options.name, "shared": options.shared}
    files = {"private_key": options.file, "certificate": options.certificate, "passphrase": options.passphrase_file}
    for name, path in files.items():
        if path:
            given = read(path).decode(errors="replace")
            fields[name] = given.rstrip("\r\n") if name == "passphrase" else given
    say(server.post("/keys", **fields)["id"])
    return DONE


def remove(server: Server, options: argparse.Namespace) -> int:
    server.ask("DELETE", f"/keys/{quote(options.key, safe='')}")
    return DONE


def accept(server: Server, options: argparse.Namespace) -> int:
    """Shows the host key; pins it once it is named, as who compared it does."""
    path, named = _key_of(options), {"fingerprint": options.fingerprint}
    found = server.post(path, **named) if options.fingerprint else server.get(path)
    through = f" through {line(found['through'])}" if found["through"] else ""
    known = "changed" if found["changed"] else "accepted" if found["accepted"] else "not accepted"
    say(f"{found['fingerprint']}  {line(found['host'])}:{found['port']}{through}  {known}")
    return DONE if found["accepted"] else UNREACHABLE


def forget(server: Server, options: argparse.Namespace) -> int:
    """The one that is shown first: of a jump host whose key changed before the machine's own."""
    found = server.get(_key_of(options))
    hop = urlencode({"host": found["host"], "port": found["port"]})
    server.ask("DELETE", f"{_key_of(options)}?{hop}")
    say(f"{line(found['host'])}:{found['port']} is not known any more")
    return DONE


def _key_of(options: argparse.Namespace) -> str:
    return f"{of(options)}/targets/{options.target}/key"


def register(named: Any) -> None:
    rows(add(named, "keys", listed, "the stored SSH keys that you may connect with"), *KEYS)
    kept = add(named, "store-key", store, "store a private SSH key, sealed, and print its id")
    kept.add_argument("name", help="what it is for")
    kept.add_argument("file", type=Path, help="the private key, or - for standard input")
    kept.add_argument("--certificate", type=Path, metavar="FILE", help="OpenSSH's -cert.pub")
    kept.add_argument("--passphrase-file", type=Path, metavar="FILE", help="what opens the key")
    kept.add_argument("--shared", action="store_true", help="for everyone here; administrators")
    gone = add(named, "remove-key", remove, "forget a stored key's secret, once and for all")
    gone.add_argument("key", help="its id, as keys lists it")
    pinned = with_session(named, "accept-key", accept, "look at a machine's host key, or accept it")
    forgot = with_session(named, "forget-key", forget, "forget the host key that was accepted")
    for one in (pinned, forgot):
        one.add_argument("target", type=int, help="its number, as targets lists it")
    pinned.add_argument("fingerprint", nargs="?", default="", help="as it was shown and compared")
