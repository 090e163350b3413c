"""Open connections: the runs at one machine share them, and they stay open a short while between two runs.

The module does not depend on SSH: the caller passes the function that opens a connection, and a value that names the
machine and the user. Everything happens in one event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

MOST_CHANNELS = 4  # runs at once over one connection; sshd's own limit is 10 (MaxSessions)


class Closable(Protocol):
    def is_closed(self) -> bool: ...


Spec = TypeVar("Spec")
Connection = TypeVar("Connection", bound=Closable)


@dataclass(slots=True)
class _Entry(Generic[Connection]):
    """One machine's connection. users: how many hold it or wait for it. used: whether anybody has held it."""

    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    channels: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_CHANNELS))
    stack: AsyncExitStack | None = None
    connection: Connection | None = None
    users: int = 0
    used: bool = False
    closing: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class Lease(Generic[Connection]):
    """The right to use a connection. reused: others used the connection before, so it may have died since."""

    connection: Connection
    reused: bool


@dataclass(slots=True)
class Connections(Generic[Spec, Connection]):
    """open: the function that opens a connection. idle_s: how long an unused connection stays open."""

    open: Callable[[Spec], AbstractAsyncContextManager[Connection]]
    idle_s: float = 0.0
    _entries: dict[Spec, _Entry[Connection]] = field(default_factory=dict)

    @asynccontextmanager
    async def lease(self, spec: Spec) -> AsyncIterator[Lease[Connection]]:
        """The machine's connection, for one channel at a time. Raises what `open` raises; a machine that does not
        answer delays no lease of another machine."""
        async with self._in_use(spec) as entry, entry.channels:
            yield await self._lease_of(spec, entry)

    async def reach(self, spec: Spec) -> None:
        """Opens the machine's connection if there is none, for a lease within `idle_s`. Raises what `open` raises."""
        async with self._in_use(spec) as entry:
            await self._open_connection(spec, entry)

    @asynccontextmanager
    async def _in_use(self, spec: Spec) -> AsyncIterator[_Entry[Connection]]:
        entry = self._entries.setdefault(spec, _Entry())
        entry.users += 1
        if entry.closing:
            entry.closing.cancel()
            entry.closing = None
        try:
            yield entry
        finally:
            entry.users -= 1
            if not entry.users:
                await self._release(spec, entry)

    async def renew(self, spec: Spec, lease: Lease[Connection]) -> None:
        """Gives the lease a new connection; other holders of the old one lose it."""
        entry = self._entries[spec]
        if entry.connection is lease.connection:
            await _close(entry)
        fresh = await self._lease_of(spec, entry)
        lease.connection, lease.reused = fresh.connection, fresh.reused

    async def _lease_of(self, spec: Spec, entry: _Entry[Connection]) -> Lease[Connection]:
        connection = await self._open_connection(spec, entry)
        reused, entry.used = entry.used, True
        return Lease(connection, reused)

    async def _open_connection(self, spec: Spec, entry: _Entry[Connection]) -> Connection:
        async with entry.opening:
            if entry.connection is not None and not entry.connection.is_closed():
                return entry.connection
            await _close(entry)
            stack = AsyncExitStack()
            entry.connection = await stack.enter_async_context(self.open(spec))
            entry.stack, entry.used = stack, False
            return entry.connection

    async def _release(self, spec: Spec, entry: _Entry[Connection]) -> None:
        if not self.idle_s or entry.connection is None or entry.connection.is_closed():
            self._entries.pop(spec, None)
            await _close(entry)
            return
        loop = asyncio.get_running_loop()
        entry.closing = loop.call_later(self.idle_s, self._close_idle, spec, entry)

    def _close_idle(self, spec: Spec, entry: _Entry[Connection]) -> None:
        if not entry.users and self._entries.get(spec) is entry:
            del self._entries[spec]
            closing = asyncio.ensure_future(_close(entry))
            _ending.add(closing)
            closing.add_done_callback(_ending.discard)


_ending: set[asyncio.Future[None]] = set()  # the event loop holds tasks weakly


async def _close(entry: _Entry[Connection]) -> None:
    stack, entry.stack, entry.connection = entry.stack, None, None
    if stack is not None:
        await stack.aclose()
