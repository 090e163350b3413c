"""Open connections, shared by the runs at one machine and kept for a short while between two runs.

It knows nothing of SSH: it keeps what it is told how to open, by the value that says where and as whom.
Everything happens in one event loop.
"""

from __future__ import annotations

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
class _Kept(Generic[Connection]):
    """One machine's connection. users: who holds it or waits for it. used: somebody has had it."""

    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    channels: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_CHANNELS))
    stack: AsyncExitStack | None = None
    connection: Connection | None = None
    users: int = 0
    used: bool = False
    closing: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class Lease(Generic[Connection]):
    """The right to use a connection. reused: others used it before, so that it may have died since."""

    connection: Connection
    reused: bool


@dataclass(slots=True)
class Connections(Generic[Spec, Connection]):
    """open: how a connection is made. idle_s: how long one stays open that nobody uses."""

    open: Callable[[Spec], AbstractAsyncContextManager[Connection]]
    idle_s: float = 0.0
    _kept: dict[Spec, _Kept[Connection]] = field(default_factory=dict)

    @asynccontextmanager
    async def lease(self, spec: Spec) -> AsyncIterator[Lease[Connection]]:
        """The machine's connection, for one channel at a time. Raises what `open` raises; one machine
        that does not answer delays nobody who wants another."""
        async with self._held(spec) as kept, kept.channels:
            yield await self._leased(spec, kept)

    async def reach(self, spec: Spec) -> None:
        """Opens the machine's connection if there is none, for whoever leases it within `idle_s`. Raises
        what `open` raises."""
        async with self._held(spec) as kept:
            await self._ready(spec, kept)

    @asynccontextmanager
    async def _held(self, spec: Spec) -> AsyncIterator[_Kept[Connection]]:
        kept = self._kept.setdefault(spec, _Kept())
        kept.users += 1
        if kept.closing:
            kept.closing.cancel()
            kept.closing = None
        try:
            yield kept
        finally:
            kept.users -= 1
            if not kept.users:
                await self._rest(spec, kept)

    async def renew(self, spec: Spec, lease: Lease[Connection]) -> None:
        """Gives the lease a new connection; whoever else held the old one loses it."""
        kept = self._kept[spec]
        if kept.connection is lease.connection:
            await _close(kept)
        fresh = await self._leased(spec, kept)
        lease.connection, lease.reused = fresh.connection, fresh.reused

    async def _leased(self, spec: Spec, kept: _Kept[Connection]) -> Lease[Connection]:
        connection = await self._ready(spec, kept)
        reused, kept.used = kept.used, True
        return Lease(connection, reused)

    async def _ready(self, spec: Spec, kept: _Kept[Connection]) -> Connection:
        async with kept.opening:
            if kept.connection is not None and not kept.connection.is_closed():
                return kept.connection
            await _close(kept)
            stack = AsyncExitStack()
            kept.connection = await stack.enter_async_context(self.open(spec))
            kept.stack, kept.used = stack, False
            return kept.connection

    async def _rest(self, spec: Spec, kept: _Kept[Connection]) -> None:
        if not self.idle_s or kept.connection is None or kept.connection.is_closed():
            self._kept.pop(spec, None)
            await _close(kept)
            return
        loop = asyncio.get_running_loop()
        kept.closing = loop.call_later(self.idle_s, self._close_idle, spec, kept)

    def _close_idle(self, spec: Spec, kept: _Kept[Connection]) -> None:
        if not kept.users and self._kept.get(spec) is kept:
            del self._kept[spec]
            closing = asyncio.ensure_future(_close(kept))
            _ending.add(closing)
            closing.add_done_callback(_ending.discard)


_ending: set[asyncio.Future[None]] = set()  # the event loop holds tasks weakly


async def _close(kept: _Kept[Connection]) -> None:
    stack, kept.stack, kept.connection = kept.stack, None, None
    if stack is not None:
        await stack.aclose()
