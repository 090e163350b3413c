"""Gunicorn's worker with threads, which gives one of them to a request that has come, not to one on its way.

A client that sends a byte now and then would hold a thread for as long as it likes; sixteen of them would
hold the server. Here such a connection waits in the poller until its head is whole, and its body where that
is small. Larger bodies are for people who are signed in: the others' are refused unread. All of it runs in
the main thread, as what calls it does.
"""

from __future__ import annotations

import re
import socket
import time
from concurrent.futures import Future
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from webapp.config.security import LARGEST_ANONYMOUS_REQUEST_BYTES

ARRIVES_WITHIN_S, LEAVES_WITHIN_S, REST_S = 15.0, 2.0, 0.05
# Both together lie in the kernel meanwhile: Linux takes 64 KiB that nobody reads (tcp_rmem, tcp(7)).
LARGEST_HEAD_BYTES = 16 * 1024
_PEEKED = LARGEST_HEAD_BYTES + LARGEST_ANONYMOUS_REQUEST_BYTES
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.I)
_ASKS_FIRST = re.compile(rb"\r\nexpect:", re.I)  # the body comes once the head was answered


def whole_bytes(seen: bytes) -> int:
    """How many bytes there have to be before a thread is worth it, by those that came."""
    end = seen.find(_END)
    if end < 0:
        return (
            len(seen) + 1 if len(seen) < LARGEST_HEAD_BYTES else len(seen)
        )  # refused by its parser
    head = seen[: end + len(_END)]
    length = _LENGTH.search(head)
    if (
        length is None
        or _ASKS_FIRST.search(head)
        or int(length[1]) > LARGEST_ANONYMOUS_REQUEST_BYTES
    ):
        return len(head)
    return len(head) + int(length[1])


def _waiting(conn: Any) -> bytes | None:
    """What came and was not read; None where no more has to come: its parser holds the next request
    already, or the client has ended."""
    if conn.parser is not None and conn.parser.unreader.buf.getvalue():
        return None
    try:
        return conn.sock.recv(_PEEKED, socket.MSG_PEEK | socket.MSG_DONTWAIT) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def _wake_at(connected: socket.socket, count: int) -> None:
    """The poller hears of it when so many bytes are there."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)


class WebWorker(ThreadWorker):  # type: ignore[misc]
    """coming: connections whose request is not whole, oldest first, and until when it may be. leaving: those
    that were answered and closed on our side, and until when they may say so, too."""

    def init_process(self) -> None:
        self.coming: dict[Any, float] = {}
        self.leaving: dict[Any, float] = {}
        super().init_process()

    def enqueue_req(self, conn: Any, awaited: int = 0) -> None:
        """awaited: how many bytes it was to have by now; fewer are all that it will ever send."""
        seen = _waiting(conn)
        needed = whole_bytes(seen) if seen is not None else 0
        come = len(seen or b"")
        if come >= needed or come < awaited:
            _wake_at(conn.sock, 1)
            self.coming.pop(conn, None)
            super().enqueue_req(conn)
            return
        self.coming.setdefault(conn, time.monotonic() + ARRIVES_WITHIN_S)
        _wake_at(conn.sock, needed)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_more, conn, needed))

    def on_more(self, conn: Any, awaited: int, client: socket.socket) -> None:
        self.poller.unregister(client)
        self.enqueue_req(conn, awaited)

    def finish_request(self, conn: Any, fs: Future[Any]) -> None:
        """Gunicorn's own closing lingers for 2 s in the main thread, in which it accepts nobody."""
        if fs.cancelled() or fs.exception() or fs.result():
            super().finish_request(conn, fs)
            return
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
            self.poller.register(conn.sock, EVENT_READ, partial(self.on_rest, conn))
        except (OSError, ValueError):
            self._drop(conn)
        else:
            self.leaving[conn] = time.monotonic() + LEAVES_WITHIN_S

    def on_rest(self, conn: Any, client: socket.socket) -> None:
        """What it still sends is thrown away, or the answer would be lost with it (RFC 9112, 9.6)."""
        try:
            ended = not client.recv(_PEEKED)
        except BlockingIOError:
            return
        except OSError:
            ended = True
        if ended:
            self.leaving.pop(conn)
            self.poller.unregister(client)
            self._drop(conn)

    def murder_pending(self) -> None:
        """Gunicorn asks once a second or more often."""
        super().murder_pending()
        now = time.monotonic()
        for waiting in (self.coming, self.leaving):
            for conn, until in list(waiting.items()):
                if self.alive and until > now:
                    break
                del waiting[conn]
                self.poller.unregister(conn.sock)
                self._drop(conn)

    def _drop(self, conn: Any) -> None:
        self.nr_conns -= 1
        conn.close()

    def _keepalive_after(self, conn: Any, keepalive: Any) -> bool:
        """A body that was not read keeps no thread waiting for its rest."""
        return bool(keepalive) and bool(conn.parser.finish_body(time.monotonic() + REST_S))
