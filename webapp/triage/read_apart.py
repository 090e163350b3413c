"""Reads large texts in a process of their own.

Parsing holds Python's interpreter lock; over a megabyte of it would freeze every page that the same
process serves. The child is bounded in time and number, and killed when it takes too long.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from threading import BoundedSemaphore

from agents.facts import View
from agents.read import RawReading, read_raw

LARGE_BYTES = 1 << 20
TIMEOUT_S = 60.0

_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks as they stand
_AT_ONCE = BoundedSemaphore(2)


def read(
    raw: bytes, *, role: View | None, hint: str = "", timeout_s: float = TIMEOUT_S
) -> RawReading:
    """`read_raw`, apart when the text is large. What takes too long is unrecognised, and says so."""
    if len(raw) <= LARGE_BYTES:
        return read_raw(raw, role=role, hint=hint)
    with _AT_ONCE:
        found = _read_in_child(raw, role, hint, timeout_s)
    if found is not None:
        return found
    return RawReading(
        unrecognised=((1, raw.count(b"\n") + 1),),
        notes=(f"It is stored, but could not be read within {timeout_s:.0f} s.",),
    )


def _read_in_child(raw: bytes, role: View | None, hint: str, timeout_s: float) -> RawReading | None:
    receiver, sender = _SPAWN.Pipe(duplex=False)
    child = _SPAWN.Process(target=_child, args=(sender, raw, role, hint))
    child.start()
    sender.close()
    try:
        answer = receiver.recv() if receiver.poll(timeout_s) else None
    except EOFError:  # the child died, of memory for instance
        answer = None
    finally:
        child.kill()
        child.join()
        receiver.close()
    return answer if isinstance(answer, RawReading) else None


def _child(sender: Connection, raw: bytes, role: View | None, hint: str) -> None:
    sender.send(read_raw(raw, role=role, hint=hint))
