"""An agent at work in the event loop of this process, its output handed to the thread that may use the
database.

Django's ORM refuses to work inside an event loop, and a slow write must not delay the connections. All
agents share one loop, so that runs at one machine can share a connection.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from queue import Empty, SimpleQueue
from threading import Event, Thread

import asyncssh

from agents.agent import Agent, Ending
from agents.connections import Connections
from agents.ssh import SshSpec, connect

OnOutput = Callable[[bytes], None]
Cancelled = Callable[[], bool]
Work = Callable[[OnOutput, Cancelled], Awaitable[Ending]]

_PIECE_BYTES = 256 * 1024  # one row of stored output
_TOGETHER_S = 0.25
_IDLE_S = 30.0  # from probes to the benchmark a person starts next


@cache
def connections() -> Connections[SshSpec, asyncssh.SSHClientConnection]:
    """The open connections of this process, used in its loop only."""
    return Connections(connect, idle_s=_IDLE_S)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Made on first use: after a server has forked."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="agents", daemon=True).start()
    return loop


@dataclass(frozen=True, slots=True)
class OutputPump:
    """The output of an agent, piece by piece, and how it ended. `stop` makes the agent end the remote side."""

    _future: Future[Ending]
    _arrived: SimpleQueue[bytes]
    stop: Event

    def pieces(self, wait_s: float) -> Iterator[bytes]:
        """Output as it arrives: at once after a silence, else joined with the output of a quarter of a second, at
        most 256 KiB, so that a machine's forty answers take few writes. Yields empty bytes after each silence of
        `wait_s`, so that the caller can renew its lease."""
        until = time.monotonic()
        while not (self._future.done() and self._arrived.empty()):
            if piece := self._next_piece(wait_s, until):
                until = time.monotonic() + _TOGETHER_S
            yield piece

    def ending(self) -> Ending:
        """How it ended; raises what the agent raised. Waits for it."""
        return self._future.result()

    def _next_piece(self, wait_s: float, until: float) -> bytes:
        piece = b""
        with suppress(Empty):
            piece = self._arrived.get(timeout=wait_s)
            while len(piece) < _PIECE_BYTES:
                left = 0.0 if self._future.done() else until - time.monotonic()
                piece += self._arrived.get(timeout=max(0.0, left))
        return piece


def start_connecting(agent: Agent) -> Future[None]:
    """Opens the machine's connection for the run that follows; the caller may cancel it."""
    return asyncio.run_coroutine_threadsafe(_reach_agent(agent), _loop())


async def _reach_agent(agent: Agent) -> None:
    await agent.reach()


@contextmanager
def pump_output(work: Work) -> Iterator[OutputPump]:
    """Starts the work; on the way out, for any reason, stops it and waits until it has ended."""
    arrived: SimpleQueue[bytes] = SimpleQueue()
    stop = Event()
    working = _carry_out_work(work, arrived.put, stop.is_set)
    future = asyncio.run_coroutine_threadsafe(working, _loop())
    future.add_done_callback(lambda _: arrived.put(b""))  # ends the wait for more output
    try:
        yield OutputPump(future, arrived, stop)
    finally:
        stop.set()
        wait([future])


async def _carry_out_work(work: Work, on_output: OnOutput, cancelled: Cancelled) -> Ending:
    return await work(on_output, cancelled)
