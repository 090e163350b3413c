"""A mail server on this machine: SMTP (RFC 5321) with STARTTLS and AUTH PLAIN; it keeps what it is given."""

from __future__ import annotations

import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

LOGIN = ("peerpath", "p@ss word")


@dataclass
class MailServer:
    """tls: what it shows. from_the_start: no STARTTLS, all is TLS. refuses: recipients it answers 550.
    got: (sender, recipients, text, whether it came by TLS and after a login)."""

    tls: ssl.SSLContext | None = None
    from_the_start: bool = False
    refuses: frozenset[str] = frozenset()
    port: int = 0
    got: list[tuple[str, list[str], str, bool, bool]] = field(default_factory=list)


class _Talk(socketserver.StreamRequestHandler):
    kept: MailServer

    def handle(self) -> None:
        self.sender, self.secure, self.known = "", False, False
        self.to: list[str] = []
        if self.kept.from_the_start and not self._encrypted():
            return
        self._say("220 here")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            verb, _, rest = line.partition(" ")
            if verb.upper() == "QUIT":
                self._say("221 bye")
                return
            if not self._done(verb.upper(), rest):
                return

    def _done(self, verb: str, rest: str) -> bool:
        """False when the line is to be dropped."""
        match verb:
            case "EHLO":
                offers = ["AUTH PLAIN"] if self.secure or not self.kept.tls else []
                starts = self.kept.tls and not self.secure
                self._say("\r\n".join(["250-here", *(f"250-{o}" for o in offers)]))
                self._say("250 STARTTLS" if starts else "250 8BITMIME")
            case "STARTTLS":
                self._say("220 go on")
                return self._encrypted()
            case "AUTH":
                sent = base64.b64decode(rest.partition(" ")[2]).decode().split("\0")
                self.known = tuple(sent[1:]) == LOGIN
                self._say("235 welcome" if self.known else "535 no")
            case "MAIL":
                self.sender, self.to = rest.partition("<")[2].partition(">")[0], []
                self._say("250 yes")
            case "RCPT":
                name = rest.partition("<")[2].partition(">")[0]
                refused = name in self.kept.refuses
                self.to += [] if refused else [name]
                self._say("550 nobody of that name" if refused else "250 yes")
            case "DATA":
                self._say("354 go on")
                text = "".join(iter(lambda: self.rfile.readline().decode(), ".\r\n"))
                self.kept.got.append((self.sender, self.to, text, self.secure, self.known))
                self._say("250 taken")
            case _:
                self._say("250 yes" if verb in {"RSET", "NOOP"} else "502 what?")
        return True

    def _encrypted(self) -> bool:
        assert self.kept.tls is not None
        try:
            self.connection = self.kept.tls.wrap_socket(self.connection, server_side=True)
        except OSError:  # the client trusts no such certificate
            return False
        self.rfile, self.secure = self.connection.makefile("rb"), True
        return True

    def _say(self, text: str) -> None:
        self.connection.sendall(f"{text}\r\n".encode())


@contextmanager
def served(**about: Any) -> Iterator[MailServer]:
    kept = MailServer(**about)
    talk = type("Talk", (_Talk,), {"kept": kept})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), talk) as server:
        server.daemon_threads = True
        kept.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield kept
        server.shutdown()
