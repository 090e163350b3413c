"""Reads large texts in a process of their own.

Parsing holds Python's interpreter lock; a megabyte of short lines takes seconds, in which every page
that the same process serves would freeze. The child is bounded in time and number, and killed when it
takes too long.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import BoundedSemaphore
from typing import TypeVar

from agents.facts import View
from agents.raw_reading import RawReading, read_raw

T = TypeVar("T")

LARGE_BYTES = 1 << 17
TIMEOUT_S = 60.0

_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks as they stand
_AT_ONCE = BoundedSemaphore(2)


def read(raw: bytes, *, role: View | None, hint: str = "", timeout_s: float = TIMEOUT_S) -> RawReading:
    """`read_raw`, apart when the text is large. What takes too long is unrecognised, and says so."""
    if len(raw) <= LARGE_BYTES:
        return read_raw(raw, role=role, hint=hint)
    found = apart(_read, raw, role, hint, timeout_s=timeout_s)
    if found is not None:
        return found
    return RawReading(
        unrecognised=((1, raw.count(b"\n") + 1),),
        notes=(f"It is stored, but could not be read within {timeout_s:.0f} s.",),
    )


def apart(work: Callable[..., T], *args: object, timeout_s: float) -> T | None:
    """What this function of a module returns, run in a child; None when it took too long, or when
    others' texts kept it waiting for as long."""
    if not _AT_ONCE.acquire(timeout=timeout_s):
        return None
    try:
        receiver, sender = _SPAWN.Pipe(duplex=False)
        child = _SPAWN.Process(target=_child, args=(sender, work, args))
        child.start()
        sender.close()
        try:
            answer: T | None = receiver.recv() if receiver.poll(timeout_s) else None
        except EOFError:  # the child died, of memory for instance
            answer = None
        finally:
            child.kill()
            child.join()
            receiver.close()
    finally:
        _AT_ONCE.release()
    return answer


def _child(sender: Connection, work: Callable[..., object], args: tuple[object, ...]) -> None:
    sender.send(work(*args))


def _read(raw: bytes, role: View | None, hint: str) -> RawReading:
    return read_raw(raw, role=role, hint=hint)
