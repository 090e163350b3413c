"""A receiver of webhooks: a real server on this machine that keeps what it is sent."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Receiver:
    """answers: statuses in order, the last one again and again."""

    port: int = 0
    scheme: str = "http"
    host: str = "127.0.0.1"
    answers: list[int] = field(default_factory=lambda: [204])
    location: str = ""
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}/hook?to=me"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_PRIVATE = True
    with received() as kept:
        yield kept


@contextmanager
def received(tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Receiver]:
    """tls: what it shows who connects; None: plain http."""
    kept = Receiver(scheme="https" if tls else "http", host=host)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.got.append((self.path, dict(self.headers), body))
            status = kept.answers.pop(0) if len(kept.answers) > 1 else kept.answers[0]
            self.send_response(status)
            if kept.location:
                self.send_header("Location", kept.location)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.port = server.server_port
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield kept
    server.shutdown()
    server.server_close()
    thread.join()
