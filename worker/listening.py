"""An agent at work in a thread of its own, its output handed to the thread that may use the database.

Django's ORM refuses to work inside an event loop, and a slow write must not delay the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event

from agents.agent import Ending

OnOutput = Callable[[bytes], None]
Cancelled = Callable[[], bool]
Work = Callable[[OnOutput, Cancelled], Awaitable[Ending]]

_PIECE_BYTES = 256 * 1024  # one row of stored output


@dataclass(frozen=True, slots=True)
class Listening:
    """What an agent says, piece by piece, and how it ended. `stop` makes it end the remote side."""

    _future: Future[Ending]
    _arrived: SimpleQueue[bytes]
    stop: Event

    def pieces(self, wait_s: float) -> Iterator[bytes]:
        """Output as it comes, joined to at most 256 KiB; empty bytes after every silence of
        `wait_s`, so that the caller can look after its other duties."""
        while not (self._future.done() and self._arrived.empty()):
            yield self._next(wait_s)

    def ending(self) -> Ending:
        """How it ended; raises what the agent raised. Waits for it."""
        return self._future.result()

    def _next(self, wait_s: float) -> bytes:
        piece = b""
        try:
            piece = self._arrived.get(timeout=wait_s)
            while len(piece) < _PIECE_BYTES:
                piece += self._arrived.get_nowait()
        except Empty:
            pass
        return piece


@contextmanager
def listening(work: Work) -> Iterator[Listening]:
    """Starts the work; on the way out, whatever the reason, stops it and waits until it is gone."""
    arrived: SimpleQueue[bytes] = SimpleQueue()
    stop = Event()
    with ThreadPoolExecutor(1, "agent") as thread:
        future = thread.submit(asyncio.run, _awaited(work, arrived.put, stop.is_set))
        try:
            yield Listening(future, arrived, stop)
        finally:
            stop.set()


async def _awaited(work: Work, on_output: OnOutput, cancelled: Cancelled) -> Ending:
    return await work(on_output, cancelled)
